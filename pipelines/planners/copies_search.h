// The least largest stage over all sequences of nested cuts, for each set of what comes last and
// each number of copies of its stages, in one pass over pairs of sets; cut by an upper bound.
//
//   CopiesSearch<Costs> search(costs, /*most_copies=*/8, upper);
//   CopiesResult r = search.Run(deadline);
//   for (const CopiesStage& s : r.stages) ...          // sets s.set \ s.later on s.copies copies
//
// More copies behind a stage put more in flight before it and take devices, so of a set's plans
// those are kept that no plan of no more copies equals. Costs derive from SequenceCosts and have:
//
//   const Downsets& sets();
//   const std::vector<int>& copies();           // that a stage may have, ascending
//   double Work(int set), WorkAbove(int set);   // copies times stage time that they need at least
//   bool Sum(int set, int later, Stage* stage); // false: cannot be a stage
//   double room();                              // bytes of a device
//   RecomputeTime Recompute(set, later, stage, y);
//   double ExactRecompute(set, later, stage, y, time);
//
// A Stage has Time(copies), which is not below Fewest(upper) copies' reach for `upper`, and the
// bytes of a device with y micro-batches in flight; Recompute says what fitting them adds to
// Time(1).
#ifndef PIPELAB_PIPELINES_PLANNERS_COPIES_SEARCH_H_
#define PIPELAB_PIPELINES_PLANNERS_COPIES_SEARCH_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipelines/planners/downsets.h"

namespace pipelab {

// What recomputing adds to a stage's time: at least, and what is enough. Infinite: it never fits.
struct RecomputeTime {
  double least = 0, enough = 0;
};

struct CopiesStage {
  int set = 0, later = 0;
  int copies = 0, copies_and_behind = 0;
};

struct CopiesResult {
  std::vector<CopiesStage> stages;  // from the first on; empty: none below the upper bound
  double value = std::numeric_limits<double>::infinity();
  bool stopped = false;
};

// A sequence's value is its longest stage's time, and all copies behind a stage put one micro-batch
// each in flight.
struct SequenceCosts {
  // Called once the stage may be fast enough. True: it takes longer than was known before.
  template <typename Stage>
  static bool Finish(int /*set*/, int /*later*/, Stage* /*stage*/) {
    return false;
  }
  template <typename Stage>
  static int64_t InFlight(const Stage& /*stage*/, int copies, int copies_behind) {
    return 1 + (copies_behind + copies - 1) / copies;
  }
  // What the plan's value is at least, for a stage that takes `time`.
  template <typename Stage>
  static double Value(const Stage& /*stage*/, int /*copies*/, double time) {
    return time;
  }
};

template <typename Costs>
class CopiesSearch {
 public:
  // `most_copies` is the most that all stages together may have.
  CopiesSearch(const Costs& costs, int most_copies, double upper)
      : costs_(costs),
        sets_(costs.sets()),
        most_copies_(most_copies),
        upper_(upper),
        words_(sets_.words()) {}

  CopiesResult Run(absl::Time deadline) {
    CopiesResult result;
    rows_.resize(sets_.size());
    AddRow(0, 0);
    Entry(0, 0)->value = 0;
    Keep(0);
    for (int u = 1; u < sets_.size(); ++u) {
      if (u % 32 == 0 && absl::Now() > deadline) {
        result.stopped = true;
        return result;
      }
      const int most = MostCopiesOf(u);
      if (most < 1) continue;
      AddRow(u, most);
      ExtendAll(u);
      Keep(u);
    }
    Take(&result);
    return result;
  }

 private:
  using Stage = typename Costs::Stage;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // The best plan of a set with so many copies: the value, its first stage's copies, what is
  // behind.
  struct Cell {
    double value = kInfinity;
    int later = -1, d = 0;
  };
  struct Row {
    size_t begin = 0;
    int most = -1;  // copies
    int kept_begin = 0, kept_end = 0;
  };

  Cell* Entry(int u, int copies) { return &cells_[rows_[u].begin + copies]; }
  void AddRow(int u, int most) {
    rows_[u].begin = cells_.size();
    rows_[u].most = most;
    cells_.resize(cells_.size() + most + 1);
  }
  void AddSource(int u, int least_copies) {
    source_keys_.insert(source_keys_.end(), sets_.key(u), sets_.key(u) + words_);
    sources_.push_back({u, least_copies, costs_.Work(u)});
  }

  // Those that the operators before the cut leave.
  int MostCopiesOf(int u) const {
    if (!std::isfinite(upper_)) return most_copies_;
    const double needed = std::ceil(costs_.WorkAbove(u) / upper_ * (1 - 1e-9));
    return needed > most_copies_ ? 0 : most_copies_ - static_cast<int>(needed);
  }

  void ExtendAll(int u) {
    const uint64_t* key = sets_.key(u);
    const double work = costs_.Work(u);
    const double copy_time = upper_ * (1 + 1e-9);
    const int most = rows_[u].most;
    const uint64_t* source_key = source_keys_.data();
    for (const Source& source : sources_) {
      bool included = true;
      for (int w = 0; w < words_; ++w) {
        included &=
            (((key[w] | Downsets::kHigh) - source_key[w]) & Downsets::kHigh) == Downsets::kHigh;
      }
      source_key += words_;
      if (!included) continue;
      const int spare = most - source.least_copies;
      if (spare < 1 || work - source.work >= copy_time * spare) continue;
      Extend(u, source.set, source.least_copies);
    }
  }

  void Extend(int u, int later, int least_behind) {
    Stage stage;
    if (!costs_.Sum(u, later, &stage)) return;
    const int most = rows_[u].most;
    // With the most copies, and recomputing all.
    const int64_t y = costs_.InFlight(stage, std::max(1, most - least_behind), least_behind);
    if ((stage.in_flight_bytes - stage.in_flight_savings) * static_cast<double>(y) +
            stage.fixed_bytes - stage.fixed_savings >
        costs_.room()) {
      return;
    }
    ++epoch_;
    Cell* here = Entry(u, 0);
    const auto& allowed = costs_.copies();
    auto it = allowed.begin();
    double fewest = stage.Fewest(upper_);
    if (fewest > most - least_behind) return;
    if (costs_.Finish(u, later, &stage)) fewest = stage.Fewest(upper_);
    if (fewest > most - least_behind) return;
    if (fewest > 1) it = std::lower_bound(it, allowed.end(), static_cast<int>(fewest));
    for (; it != allowed.end(); ++it) {
      const int d = *it;
      if (d > most - least_behind) return;
      const double time = stage.Time(d);
      if (time >= upper_) continue;
      for (int i = rows_[later].kept_begin; i < rows_[later].kept_end; ++i) {
        const Kept& behind = kept_[i];
        if (behind.copies + d > most) break;
        Cell& cell = here[behind.copies + d];
        const double limit = std::min(cell.value, upper_);
        double value = std::max(behind.value, costs_.Value(stage, d, time));
        if (value >= limit) continue;
        const int64_t y = costs_.InFlight(stage, d, behind.copies);
        if (stage.in_flight_bytes * static_cast<double>(y) + stage.fixed_bytes > costs_.room()) {
          const double extra = Extra(u, later, stage, y, (limit - time) * d);
          if (extra == kInfinity) {
            if (known_[y].time.least == kInfinity) break;  // nor would more in flight fit
            continue;
          }
          value = std::max(value, costs_.Value(stage, d, time + extra / d));
        }
        if (value < limit) cell = {value, later, d};
      }
    }
  }

  // What recomputing adds at least; infinite: `most` or more.
  double Extra(int u, int later, const Stage& stage, int64_t y, double most) {
    if (static_cast<int64_t>(known_.size()) <= y) known_.resize(y + 1);
    Known& known = known_[y];
    if (known.epoch != epoch_) {
      known.time = costs_.Recompute(u, later, stage, y);
      known.epoch = epoch_;
    }
    if (known.time.least >= most) return kInfinity;
    if (known.time.least < known.time.enough) {
      known.time.least = known.time.enough = costs_.ExactRecompute(u, later, stage, y, known.time);
    }
    return known.time.least < most ? known.time.least : kInfinity;
  }

  // Keeps those of a set's plans that no plan of fewer copies equals.
  void Keep(int u) {
    Row& row = rows_[u];
    row.kept_begin = static_cast<int>(kept_.size());
    double best = kInfinity;
    for (int s = 0; s <= row.most; ++s) {
      const double value = Entry(u, s)->value;
      if (value >= best) continue;
      best = value;
      kept_.push_back({s, value});
    }
    row.kept_end = static_cast<int>(kept_.size());
    if (row.kept_begin < row.kept_end) AddSource(u, kept_[row.kept_begin].copies);
  }

  void Take(CopiesResult* result) {
    const int all = sets_.size() - 1;
    const Row& row = rows_[all];
    if (row.kept_begin == row.kept_end) return;
    const Kept best = kept_[row.kept_end - 1];
    if (best.value >= upper_) return;
    result->value = best.value;
    for (int u = all, s = best.copies; u > 0;) {
      const Cell& cell = *Entry(u, s);
      result->stages.push_back({u, cell.later, cell.d, s});
      s -= cell.d;
      u = cell.later;
    }
  }

  struct Source {
    int set, least_copies;
    double work;
  };
  struct Kept {
    int copies;
    double value;
  };
  struct Known {  // of the stage at hand
    int64_t epoch = -1;
    RecomputeTime time;
  };

  const Costs& costs_;
  const Downsets& sets_;
  const int most_copies_;
  const double upper_;
  const int words_;
  std::vector<Row> rows_;
  std::vector<Cell> cells_;
  std::vector<Kept> kept_;
  std::vector<Known> known_;  // [y]
  int64_t epoch_ = 0;
  std::vector<Source> sources_;  // sets that have plans
  std::vector<uint64_t> source_keys_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_COPIES_SEARCH_H_
