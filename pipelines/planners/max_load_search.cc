// For each set of what comes first, and each number of accelerators and processors, the smallest
// largest load, by sets in the order of their work; what cannot beat the best plan so far is not
// kept, and that begins with plans that have fewer cuts.
#include "pipelines/planners/max_load_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"

namespace pipelab {
namespace {

// An output and the groups that make and take it: two of them at least.
struct Net {
  double time = 0;
  std::vector<int> pins;  // the maker first
};

struct CutSums {
  double accelerator = 0, processor = 0, least = 0, bytes = 0;
  int processor_only = 0;
  double cut = 0;  // of all nets with pins on both sides
};

class MaxLoadSearch {
 public:
  MaxLoadSearch(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
                double upper, absl::Time deadline)
      : problem_(problem),
        groups_(groups),
        sets_(sets),
        upper_(upper),
        deadline_(deadline),
        accelerators_(static_cast<int>(std::min<int64_t>(problem.devices, sets.num_nodes()))),
        processors_(static_cast<int>(std::min<int64_t>(problem.processors, sets.num_nodes()))) {
    AddSums();
    AddCuts();
  }

  // False: there is no plan below the upper bound, or no time.
  bool Run(std::vector<PlanStage>* stages) {
    std::vector<int> order(sets_.size());
    for (int u = 0; u < sets_.size(); ++u) order[u] = u;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return sums_[a].least < sums_[b].least; });
    cells_.resize(static_cast<size_t>(sets_.size()) * Row());
    CellOf(0, 0, 0)->value = 0;
    kept_.resize(sets_.size());
    Keep(0);
    size_t first = 0;
    for (size_t i = 1; i < order.size(); ++i) {
      const int u = order[i];
      if (i % 32 == 0 && absl::Now() > deadline_) {
        stopped_ = true;
        return false;
      }
      while (first < sources_.size() &&
             sources_[first].least + upper_ <= sums_[u].least * (1 - 1e-9)) {
        ++first;
      }
      ExtendAll(u, first);
      Keep(u);
    }
    return Take(stages);
  }

  bool stopped() const { return stopped_; }

 private:
  struct Cell {
    double value = kInfinity;
    int from = -1;
    bool on_processor = false;
  };
  struct Kept {
    int accelerators, processors;
    double value;
  };

  int Row() const { return (accelerators_ + 1) * (processors_ + 1); }
  Cell* CellOf(int u, int accelerators, int processors) {
    return &cells_[static_cast<size_t>(u) * Row() + accelerators * (processors_ + 1) + processors];
  }

  void AddSums() {
    std::vector<CutSums> of_group(groups_.members.size());
    for (size_t g = 0; g < of_group.size(); ++g) {
      for (int v : groups_.members[g]) {
        const PlanOperator& o = problem_.operators[v];
        of_group[g].accelerator += o.variants.at(1)[0].time;
        of_group[g].processor += o.processor_time;
        of_group[g].bytes += o.variants.at(1)[0].fixed_bytes;
        of_group[g].processor_only += o.on_accelerator ? 0 : 1;
      }
      of_group[g].least = of_group[g].processor_only > 0 ? of_group[g].processor
                          : processors_ == 0
                              ? of_group[g].accelerator
                              : std::min(of_group[g].accelerator, of_group[g].processor);
      if (of_group[g].accelerator > 0) {
        processor_rate_ = std::max(
            processor_rate_, of_group[g].accelerator / std::max(of_group[g].processor, 1e-300));
      }
    }
    sums_.resize(sets_.size());
    for (int u = 1; u < sets_.size(); ++u) {
      const CutSums &below = sums_[sets_.parent(u)], &more = of_group[sets_.added(u)];
      sums_[u].accelerator = below.accelerator + more.accelerator;
      sums_[u].processor = below.processor + more.processor;
      sums_[u].least = below.least + more.least;
      sums_[u].bytes = below.bytes + more.bytes;
      sums_[u].processor_only = below.processor_only + more.processor_only;
    }
  }

  void AddCuts() {
    std::vector<Net> nets;
    for (int v = 0; v < problem_.size(); ++v) {
      const PlanOperator& o = problem_.operators[v];
      Net net = {o.transfer_time, {groups_.group_of[v]}};
      for (int e : o.out_edges) {
        const int to = groups_.group_of[problem_.edges[e].to];
        if (std::count(net.pins.begin(), net.pins.end(), to) == 0) net.pins.push_back(to);
      }
      if (net.time > 0 && net.pins.size() > 1) nets.push_back(std::move(net));
    }
    // Those with the same pins are one.
    std::sort(nets.begin(), nets.end(), [](const Net& a, const Net& b) { return a.pins < b.pins; });
    for (Net& net : nets) {
      if (!nets_.empty() && nets_.back().pins == net.pins) {
        nets_.back().time += net.time;
      } else {
        nets_.push_back(std::move(net));
      }
    }
    // A set's are its parent's but for the nets of the group that it adds.
    std::vector<std::vector<int>> of_group(groups_.members.size());
    for (size_t n = 0; n < nets_.size(); ++n) {
      for (int pin : nets_[n].pins) of_group[pin].push_back(static_cast<int>(n));
    }
    std::vector<int> touched(nets_.size(), -1);  // [net] the last set that looked at it
    cut_begin_ = {0, 0};
    for (int u = 1; u < sets_.size(); ++u) {
      const int parent = sets_.parent(u);
      const auto take = [&](int n) {
        cut_.push_back(n);
        sums_[u].cut += nets_[n].time;
      };
      for (int n : of_group[sets_.added(u)]) {
        touched[n] = u;
        const auto& pins = nets_[n].pins;
        const bool all =
            std::all_of(pins.begin(), pins.end(), [&](int pin) { return sets_.Has(u, pin); });
        if (!all) take(n);
      }
      for (int i = cut_begin_[parent]; i < cut_begin_[parent + 1]; ++i) {
        if (touched[cut_[i]] != u) take(cut_[i]);
      }
      cut_begin_.push_back(static_cast<int>(cut_.size()));
    }
  }

  // What the stage u \ from pays for transfers: both cuts, less what goes past it.
  double Transfers(int u, int from) const {
    double time = sums_[u].cut + sums_[from].cut;
    for (int i = cut_begin_[from]; i < cut_begin_[from + 1]; ++i) {
      const Net& net = nets_[cut_[i]];
      if (net.pins.size() == 2) {
        // One of the two is before the stage: the other is in it, or the output goes past.
        if (!sets_.Has(u, net.pins[0]) || !sets_.Has(u, net.pins[1])) time -= 2 * net.time;
        continue;
      }
      bool outside = false, inside = false;
      for (int pin : net.pins) {
        if (!sets_.Has(u, pin)) {
          outside = true;
        } else if (!sets_.Has(from, pin)) {
          inside = true;
        }
      }
      if (outside) time -= net.time * (inside ? 1 : 2);
    }
    return time;
  }

  // What the devices that are left can do must be enough for the rest.
  bool LeavesEnough(int u, int accelerators, int processors) const {
    if (!std::isfinite(upper_)) return true;
    const double rest = sums_.back().accelerator - sums_[u].accelerator;
    const double most =
        upper_ * (accelerators_ - accelerators + (processors_ - processors) * processor_rate_);
    return rest <= most * (1 + 1e-9) || sums_.back().processor_only > 0;
  }

  // Whether so many devices can do the set's work at all.
  bool IsEnough(int u, int accelerators, int processors) const {
    if (sums_[u].processor_only > 0) return true;
    return sums_[u].accelerator < upper_ * (accelerators + processors * processor_rate_);
  }

  // From all sets inside that may leave a stage below the upper bound.
  void ExtendAll(int u, size_t first) {
    const CutSums& to = sums_[u];
    const uint64_t* key = sets_.key(u);
    const int words = sets_.words();
    const uint64_t* source_key = source_keys_.data() + first * words;
    double best = ToBeat(u);
    for (size_t s = first; s < sources_.size(); ++s, source_key += words) {
      const Source& source = sources_[s];
      const double load = to.accelerator - source.accelerator + std::abs(to.cut - source.cut);
      if (source.value >= best) continue;
      if (load >= best && to.processor - source.processor >= best) continue;
      bool included = true;
      for (int w = 0; w < words; ++w) {
        included &=
            (((key[w] | Downsets::kHigh) - source_key[w]) & Downsets::kHigh) == Downsets::kHigh;
      }
      if (included && Extend(u, source.set)) best = ToBeat(u);
    }
  }

  // Plans of this value or more are of no use to the set, whatever their devices.
  double ToBeat(int u) {
    double most = 0;
    for (int a = 0; a <= accelerators_; ++a) {
      for (int p = 0; p <= processors_; ++p) {
        const Cell& cell = *CellOf(u, a, p);
        if (cell.value > most && LeavesEnough(u, a, p) && IsEnough(u, a, p)) most = cell.value;
      }
    }
    return std::min(most, upper_);
  }

  // Whether a plan of the set got better.
  bool Extend(int u, int from) {
    bool better = false;
    const CutSums &to = sums_[u], &at = sums_[from];
    double load = to.accelerator - at.accelerator;
    const double least = load + std::abs(to.cut - at.cut);
    if (least < upper_ && to.processor_only == at.processor_only &&
        to.bytes - at.bytes <= problem_.memory_bytes * (1 + kExact)) {
      bool known = false;
      for (const Kept& kept : kept_[from]) {
        if (kept.accelerators == accelerators_) continue;
        Cell* cell = CellOf(u, kept.accelerators + 1, kept.processors);
        if (std::max(kept.value, known ? load : least * (1 - kExact)) >= cell->value) continue;
        if (!known) load += Transfers(u, from);
        known = true;
        const double value = std::max(kept.value, load);
        if (value >= std::min(cell->value, upper_)) continue;
        *cell = {value, from, false};
        better = true;
      }
    }
    const double time = to.processor - at.processor;
    if (time >= upper_) return better;
    for (const Kept& kept : kept_[from]) {
      if (kept.processors == processors_) continue;
      Cell* cell = CellOf(u, kept.accelerators, kept.processors + 1);
      const double value = std::max(kept.value, time);
      if (value >= std::min(cell->value, upper_)) continue;
      *cell = {value, from, true};
      better = true;
    }
    return better;
  }

  // Plans that no plan of no more devices equals, and that can still be completed.
  void Keep(int u) {
    for (int a = 0; a <= accelerators_; ++a) {
      for (int p = 0; p <= processors_; ++p) {
        const double value = CellOf(u, a, p)->value;
        if (value >= upper_ || !LeavesEnough(u, a, p)) continue;
        const bool beaten = std::any_of(kept_[u].begin(), kept_[u].end(), [&](const Kept& kept) {
          return kept.accelerators <= a && kept.processors <= p && kept.value <= value;
        });
        if (!beaten) kept_[u].push_back({a, p, value});
      }
    }
    if (kept_[u].empty()) return;
    const CutSums& sums = sums_[u];
    double value = kInfinity;
    for (const Kept& kept : kept_[u]) value = std::min(value, kept.value);
    sources_.push_back({sums.accelerator, sums.processor, sums.cut, sums.least, value, u});
    source_keys_.insert(source_keys_.end(), sets_.key(u), sets_.key(u) + sets_.words());
  }

  bool Take(std::vector<PlanStage>* stages) {
    int u = sets_.size() - 1;
    if (kept_[u].empty()) return false;
    const Kept best =
        *std::min_element(kept_[u].begin(), kept_[u].end(),
                          [](const Kept& a, const Kept& b) { return a.value < b.value; });
    stages->clear();
    for (int a = best.accelerators, p = best.processors; u != 0;) {
      const Cell& cell = *CellOf(u, a, p);
      PlanStage stage;
      stage.on_processor = cell.on_processor;
      for (int g : sets_.Nodes(u, cell.from)) {
        stage.layers.insert(stage.layers.end(), groups_.members[g].begin(),
                            groups_.members[g].end());
      }
      std::sort(stage.layers.begin(), stage.layers.end());
      stage.variants.assign(stage.layers.size(), 0);
      stages->push_back(std::move(stage));
      (cell.on_processor ? p : a) -= 1;
      u = cell.from;
    }
    std::reverse(stages->begin(), stages->end());
    return true;
  }

  const PlanProblem& problem_;
  const OperatorGroups& groups_;
  const Downsets& sets_;
  const double upper_;
  const absl::Time deadline_;
  const int accelerators_, processors_;
  double processor_rate_ = 0;  // accelerator time that a processor does in a unit of time, at most
  std::vector<CutSums> sums_;  // [set]
  std::vector<Net> nets_;
  std::vector<int> cut_begin_, cut_;  // [set] -> nets
  std::vector<Cell> cells_;
  std::vector<std::vector<Kept>> kept_;
  struct Source {  // a set that has plans
    double accelerator, processor, cut, least, value;
    int set;
  };
  std::vector<Source> sources_;
  std::vector<uint64_t> source_keys_;
  bool stopped_ = false;
};

}  // namespace

FoundStages SearchMaxLoad(const PlanProblem& problem, const OperatorGroups& groups,
                          const Downsets& sets, double upper, absl::Time deadline) {
  MaxLoadSearch search(problem, groups, sets, upper, deadline);
  FoundStages found;
  if (!search.Run(&found.stages)) found.stages.clear();
  found.stopped = search.stopped();
  return found;
}

}  // namespace pipelab
