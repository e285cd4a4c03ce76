#include <algorithm>
#include <cmath>

#include "pipelines/plan/piper_search.h"
#include "pipelines/plan/plan_costs.h"

namespace pipelab {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kMostCopies = 256;
constexpr int64_t kMostEntries = 40'000'000;

int64_t MostCopies(const PiperCosts& costs, const PlanProblem& problem) {
  return std::min(problem.devices / costs.degrees()[0], problem.micro_batches);
}

class Search {
 public:
  Search(const PiperCosts& costs, const PlanProblem& problem, double upper)
      : costs_(costs),
        sets_(costs.sets()),
        problem_(problem),
        upper_(upper),
        degree_(costs.degrees()[0]),
        words_(sets_.words()) {}

  PiperResult Run(absl::Time deadline) {
    PiperResult result;
    rows_.resize(sets_.size());
    AddRow(0, 0);
    Entry(0, 0)->value = 0;
    Keep(0);
    for (int u = 1; u < sets_.size(); ++u) {
      if (u % 32 == 0 && absl::Now() > deadline) {
        result.stopped = true;
        return result;
      }
      const int64_t most = MostCopiesOf(u);
      if (most < 1) continue;
      AddRow(u, static_cast<int>(most));
      ExtendAll(u);
      Keep(u);
    }
    Take(&result);
    return result;
  }

 private:
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
  int64_t MostCopiesOf(int u) const {
    const double needed =
        std::isfinite(upper_) ? std::ceil(costs_.WorkAbove(u) / upper_ * (1 - 1e-9)) : 0;
    if (needed > static_cast<double>(problem_.devices)) return 0;
    return std::min((problem_.devices - static_cast<int64_t>(needed)) / degree_,
                    problem_.micro_batches);
  }

  void ExtendAll(int u) {
    const uint64_t* key = sets_.key(u);
    const double work = costs_.Work(u);
    const double device_time = upper_ * degree_ * (1 + 1e-9);
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
      if (spare < 1 || work - source.work >= device_time * spare) continue;
      Extend(u, source.set, source.least_copies);
    }
  }

  void Extend(int u, int later, int least_behind) {
    PiperStage stage;
    if (!costs_.Sum(u, later, 0, &stage)) return;
    const int most = rows_[u].most;
    // With the most copies, and recomputing all.
    const int copies = std::max(1, most - least_behind);
    const int64_t y = 1 + (least_behind + copies - 1) / copies;
    if ((stage.in_flight_bytes - stage.in_flight_savings) * static_cast<double>(y) +
            stage.fixed_bytes - stage.fixed_savings >
        problem_.memory_bytes * (1 + 1e-9)) {
      return;
    }
    ++epoch_;
    Cell* here = Entry(u, 0);
    for (int d : costs_.copies()) {
      if (d > most - least_behind) return;
      const double time = stage.Time(d);
      if (time >= upper_) continue;
      for (int i = rows_[later].kept_begin; i < rows_[later].kept_end; ++i) {
        const Kept& behind = kept_[i];
        if (behind.copies + d > most) break;
        Cell& cell = here[behind.copies + d];
        const double limit = std::min(cell.value, upper_);
        double value = std::max(behind.value, time);
        if (value >= limit) continue;
        const int64_t y = 1 + (behind.copies + d - 1) / d;
        if (stage.in_flight_bytes * static_cast<double>(y) + stage.fixed_bytes >
            problem_.memory_bytes) {
          const double extra = Extra(u, later, stage, y, (limit - time) * d);
          if (extra == kInfinity) {
            if (known_[y].time.least == kInfinity) break;  // nor would more in flight fit
            continue;
          }
          value = std::max(value, time + extra / d);
        }
        if (value < limit) cell = {value, later, d};
      }
    }
  }

  // What recomputing adds at least; infinite: `most` or more.
  double Extra(int u, int later, const PiperStage& stage, int64_t y, double most) {
    if (static_cast<int64_t>(known_.size()) <= y) known_.resize(y + 1);
    Known& known = known_[y];
    if (known.epoch != epoch_) {
      known.time = costs_.Recompute(u, later, 0, stage, y);
      known.epoch = epoch_;
    }
    if (known.time.least >= most) return kInfinity;
    if (known.time.least < known.time.enough) {
      known.time.least = known.time.enough =
          costs_.ExactRecompute(u, later, 0, stage, y, known.time);
    }
    return known.time.least < most ? known.time.least : kInfinity;
  }

  // Of a set's plans those that no plan of fewer copies equals.
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

  void Take(PiperResult* result) {
    const int all = sets_.size() - 1;
    int best = 0;
    for (int s = 1; s <= rows_[all].most; ++s) {
      if (best == 0 || Entry(all, s)->value < Entry(all, best)->value) best = s;
    }
    if (best == 0 || Entry(all, best)->value >= upper_) {
      result->lower_bound = upper_;
      return;
    }
    result->lower_bound = Entry(all, best)->value;
    for (int u = all, s = best; u > 0;) {
      const Cell cell = *Entry(u, s);
      result->stages.push_back(
          MakePiperStage(costs_, u, cell.later, 0, cell.d, (s + cell.d - 1) / cell.d));
      s -= cell.d;
      u = cell.later;
    }
    result->value = PlanValue(problem_, PlanObjective::kStageTime, result->stages);
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
    PiperCosts::RecomputeTime time;
  };

  const PiperCosts& costs_;
  const Downsets& sets_;
  const PlanProblem& problem_;
  const double upper_;
  const int degree_, words_;
  std::vector<Row> rows_;
  std::vector<Cell> cells_;
  std::vector<Kept> kept_;
  std::vector<Known> known_;  // [y]
  int64_t epoch_ = 0;
  std::vector<Source> sources_;  // sets that have plans
  std::vector<uint64_t> source_keys_;
};

}  // namespace

bool SuitsPiperByCopies(const PiperCosts& costs, const PlanProblem& problem) {
  if (!costs.uniform() || costs.degrees().size() != 1) return false;
  const int64_t copies = MostCopies(costs, problem);
  return copies <= kMostCopies && copies * costs.sets().size() <= kMostEntries;
}

PiperResult PiperByCopies(const PiperCosts& costs, const PlanProblem& problem, double upper,
                          absl::Time deadline) {
  return Search(costs, problem, upper).Run(deadline);
}

}  // namespace pipelab
