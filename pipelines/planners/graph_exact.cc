#include "pipelines/planners/graph_exact.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace pipelab {
namespace {

using Mask = uint64_t;
// Pairs of these are tried as stages.
constexpr size_t kMostUpsets = 4000;
constexpr size_t kMostLabels = 400000, kMostSets = 200000;  // a few hundred megabytes

struct Label {
  double value = 0;    // the longest stage, or what is left of the batch at its pace
  double longest = 0;  // path; 0 unless it is of the batch
  int64_t devices = 0;
  // [operator that feeds the upset, ascending]
  std::vector<int64_t> samples;
  std::vector<double> paths;
  const Label* next = nullptr;  // and the stage in front of it
  OperatorSet* set = nullptr;
  StageShape shape;
  int64_t in_flight = 0;
};

class Search {
 public:
  Search(const OperatorSets& sets, const GraphGoal& goal, double known, SearchEffort* effort)
      : sets_(sets),
        p_(sets.problem()),
        goal_(goal),
        best_(known),
        effort_(*effort),
        batch_(static_cast<double>(BatchSamples(p_)) / static_cast<double>(p_.micro_batch_size)) {}

  ExactResult Run() {
    ExactResult result;
    if (p_.size() > kMostExactOperators) return result;
    Prepare();
    if (!FewUpsets()) return result;
    const Mask all = p_.size() == 64 ? ~Mask{0} : (Mask{1} << p_.size()) - 1;
    waiting_.resize(p_.size() + 1);
    Add(0, Label());
    for (auto& upsets : waiting_) {
      for (auto& [upset, labels] : upsets) {
        for (const Label* label : labels) {
          if (gave_up_ || !CanBeat(upset, *label)) continue;
          label_ = label;
          upset_ = upset;
          Extend(0, 0, 0);
        }
      }
    }
    result.complete = !gave_up_;
    const Label* best = nullptr;
    for (const Label* label : waiting_.back()[all]) {
      if (best == nullptr || Value(*label) < Value(*best)) best = label;
    }
    if (best != nullptr) result.stages = StagesOf(best);
    return result;
  }

 private:
  double Value(const Label& label) const { return label.value + label.longest; }
  double Own(StageShape shape) const {
    return static_cast<double>(sets_.SamplesOf(shape)) / static_cast<double>(p_.micro_batch_size);
  }

  void Prepare() {
    for (const StageShape shape : sets_.shapes()) most_own_ = std::max(most_own_, Own(shape));
    order_ = TopologicalOrder(p_);
    std::reverse(order_.begin(), order_.end());
    feeds_.resize(p_.size());
    for (const PlanEdge& edge : p_.edges) feeds_[edge.from] |= Mask{1} << edge.to;
    for (int v = 0; v < p_.size(); ++v) {
      // Of one device: no stage takes less from each of its copies.
      least_.push_back(sets_.LeastWork(sets_.Make({v})));
    }
  }

  bool FewUpsets() const {
    std::vector<Mask> upsets = {0};
    std::unordered_set<Mask> seen = {0};
    for (size_t i = 0; i < upsets.size(); ++i) {
      const Mask upset = upsets[i];
      for (int v = 0; v < p_.size(); ++v) {
        const Mask one = Mask{1} << v;
        if ((upset & one) != 0 || (feeds_[v] & ~upset) != 0) continue;
        if (seen.insert(upset | one).second) upsets.push_back(upset | one);
      }
      if (upsets.size() > kMostUpsets) return false;
    }
    return true;
  }

  // What no stage of a plan below the best takes.
  double LongestStage() const {
    if (!goal_.batch) return best_;
    const double rest = batch_ - most_own_;
    return rest <= 0 ? std::numeric_limits<double>::infinity() : best_ / rest;
  }

  bool CanBeat(Mask upset, const Label& label) const {
    double work = 0;
    for (int v = 0; v < p_.size(); ++v) work += (upset >> v & 1) != 0 ? 0 : least_[v];
    const auto left = static_cast<double>(p_.devices - label.devices);
    return Value(label) < best_ && left > 0 && work / left < LongestStage();
  }

  // Goes on with the operators from place `from` of the order; `stage` has some before it.
  void Extend(size_t from, Mask stage, double work) {
    if (gave_up_ || (gave_up_ = !effort_.Spend(1))) return;
    if (stage != 0 && work / static_cast<double>(p_.devices) >= LongestStage()) return;
    size_t i = from;
    while (i < order_.size() && !CanAdd(order_[i], stage)) ++i;
    if (i == order_.size()) {
      if (stage != 0) AddStage(stage);
      return;
    }
    const int v = order_[i];
    Extend(i + 1, stage | Mask{1} << v, work + least_[v]);
    Extend(i + 1, stage, work);
  }

  bool CanAdd(int v, Mask stage) const {
    return (upset_ >> v & 1) == 0 && (feeds_[v] & ~(upset_ | stage)) == 0;
  }

  OperatorSet* SetOf(Mask stage) {
    std::unique_ptr<OperatorSet>& set = operator_sets_[stage];
    if (set == nullptr) {
      std::vector<int> operators;
      for (int v = 0; v < p_.size(); ++v) {
        if ((stage >> v & 1) != 0) operators.push_back(v);
      }
      set = std::make_unique<OperatorSet>(sets_.Make(operators));
    }
    return set.get();
  }

  void AddStage(Mask stage) {
    gave_up_ = labels_.size() > kMostLabels || operator_sets_.size() > kMostSets;
    OperatorSet* set = SetOf(stage);
    int64_t behind = 0;
    double path = 0;
    const std::vector<int> feeding = Feeding(upset_);
    for (size_t i = 0; i < feeding.size(); ++i) {
      if ((stage >> feeding[i] & 1) == 0) continue;
      behind = std::max(behind, label_->samples[i]);
      path = std::max(path, label_->paths[i]);
    }
    for (const StageShape shape : sets_.shapes()) {
      if (label_->devices + shape.data > p_.devices) break;
      effort_.Spend(4);
      if (sets_.TimeBound(*set, shape) >= LongestStage()) continue;
      const int64_t own = sets_.SamplesOf(shape);
      Label label;
      label.in_flight = (behind + own + own - 1) / own;
      const double time = sets_.Time(set, shape, label.in_flight);
      if (time >= LongestStage() || std::isinf(time)) continue;
      const double steady = goal_.batch ? std::max(batch_ - Own(shape), 0.0) * time : time;
      const double own_path = goal_.batch ? path + Own(shape) * time : 0;
      label.value = std::max(label_->value, steady);
      label.longest = std::max(label_->longest, own_path);
      if (Value(label) >= best_) continue;
      label.devices = label_->devices + shape.data;
      label.next = label_;
      label.set = set;
      label.shape = shape;
      PutBehind(stage, feeding, behind + own, own_path, &label);
      Add(upset_ | stage, std::move(label));
    }
  }

  // Operators outside that feed the upset, ascending.
  std::vector<int> Feeding(Mask upset) const {
    std::vector<int> feeding;
    for (int v = 0; v < p_.size(); ++v) {
      if ((upset >> v & 1) == 0 && (feeds_[v] & upset) != 0) feeding.push_back(v);
    }
    return feeding;
  }

  void PutBehind(Mask stage, const std::vector<int>& feeding, int64_t samples, double path,
                 Label* label) const {
    for (int v : Feeding(upset_ | stage)) {
      const bool feeds = (feeds_[v] & stage) != 0;
      int64_t most = feeds ? samples : 0;
      double longest = feeds ? path : 0;
      const auto at = std::lower_bound(feeding.begin(), feeding.end(), v);
      if (at != feeding.end() && *at == v) {
        most = std::max(most, label_->samples[at - feeding.begin()]);
        longest = std::max(longest, label_->paths[at - feeding.begin()]);
      }
      label->samples.push_back(std::isinf(p_.memory_bytes) ? 0 : most);
      label->paths.push_back(longest);
    }
  }

  static bool NotWorse(const Label& a, const Label& b) {
    if (a.value > b.value || a.longest > b.longest || a.devices > b.devices) return false;
    for (size_t i = 0; i < a.samples.size(); ++i) {
      if (a.samples[i] > b.samples[i] || a.paths[i] > b.paths[i]) return false;
    }
    return true;
  }

  void Add(Mask upset, Label label) {
    std::vector<const Label*>& others = waiting_[__builtin_popcountll(upset)][upset];
    for (const Label* other : others) {
      if (NotWorse(*other, label)) return;
    }
    others.erase(std::remove_if(others.begin(), others.end(),
                                [&](const Label* other) { return NotWorse(label, *other); }),
                 others.end());
    if (__builtin_popcountll(upset) == p_.size()) best_ = Value(label);
    labels_.push_back(std::move(label));
    others.push_back(&labels_.back());
  }

  std::vector<PlanStage> StagesOf(const Label* label) const {
    std::vector<PlanStage> stages;
    for (; label->set != nullptr; label = label->next) {
      stages.push_back(sets_.StageOf(*label->set, label->shape, label->in_flight));
    }
    return stages;
  }

  const OperatorSets& sets_;
  const PlanProblem& p_;
  const GraphGoal goal_;
  double best_;
  SearchEffort& effort_;
  bool gave_up_ = false;
  const double batch_;  // in the problem's micro-batches, as `most_own_`
  double most_own_ = 0;
  std::vector<int> order_;     // from the sinks
  std::vector<Mask> feeds_;    // [operator]
  std::vector<double> least_;  // [operator] time of one device
  std::unordered_map<Mask, std::unique_ptr<OperatorSet>> operator_sets_;
  std::vector<std::map<Mask, std::vector<const Label*>>> waiting_;  // [size of the upset]
  std::deque<Label> labels_;
  const Label* label_ = nullptr;  // that is being extended
  Mask upset_ = 0;
};

}  // namespace

ExactResult BetterGraphPlan(const OperatorSets& sets, const GraphGoal& goal, double known_value,
                            SearchEffort* effort) {
  return Search(sets, goal, known_value, effort).Run();
}

}  // namespace pipelab
