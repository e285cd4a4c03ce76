#include "pipelines/planners/graph_exact.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pipelines/planners/graph_labels.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

using Mask = uint64_t;
using Label = GraphLabel;
using LabelStore = GraphLabelStore;
constexpr size_t kMostUpsets = 200000;
constexpr size_t kMostLabels = 400000, kMostSets = 50000;  // a few hundred megabytes

class ExactGraphSearch {
 public:
  ExactGraphSearch(const OperatorSets& sets, const GraphGoal& goal,
                   const GraphExactOptions& options, SearchEffort* effort)
      : sets_(sets),
        p_(sets.problem()),
        goal_(goal),
        best_(options.known_value),
        effort_(*effort),
        bandwidth_(FlatBandwidth(p_)),
        batch_(BatchPieces(p_)),
        store_(options.most_labels) {}

  GraphExactResult Run() {
    GraphExactResult result;
    if (p_.size() > kMostExactOperators) return result;
    Prepare();
    if (!FewUpsets()) return result;
    waiting_.resize(p_.size() + 1);
    others_ = &waiting_[0][0];
    Add(0, Label());
    for (auto& upsets : waiting_) {
      for (auto& [upset, labels] : upsets) {
        if (gave_up_) break;
        if (upset != all_) ExtendUpset(upset, labels);
      }
    }
    if (gave_up_) return result;
    result.lower_bound = std::min(best_, merged_best_);
    result.complete = merged_best_ >= best_;
    const Label* best = nullptr;
    for (const Label* label : waiting_.back()[all_]) {
      if (best == nullptr || label->Value() < best->Value()) best = label;
    }
    if (best != nullptr) result.stages = StagesOf(best);
    return result;
  }

 private:
  double Own(StageShape shape) const {
    return static_cast<double>(sets_.SamplesOf(shape)) / static_cast<double>(p_.micro_batch_size);
  }

  void Prepare() {
    all_ = p_.size() == 64 ? ~Mask{0} : (Mask{1} << p_.size()) - 1;
    double least_own = kInfinity;  // of a copy
    for (const StageShape shape : sets_.shapes()) {
      least_own = std::min(least_own, Own(shape) / static_cast<double>(shape.data));
    }
    const std::vector<int> order = TopologicalOrder(p_);
    order_.assign(order.rbegin(), order.rend());
    feeds_.resize(p_.size());
    for (const PlanEdge& edge : p_.edges) feeds_[edge.from] |= Mask{1} << edge.to;
    for (int v = 0; v < p_.size(); ++v) {
      // The work is that of one device: no stage takes less from each of its copies.
      least_.push_back(sets_.LeastWork(v));
      choice_ |= sets_.Make({v}).choice;
    }
    path_to_.resize(p_.size());
    for (int v : order) {
      for (int e : p_.operators[v].in_edges) {
        path_to_[v] = std::max(path_to_[v], path_to_[p_.edges[e].from]);
      }
      path_to_[v] += goal_.batch ? least_own * least_[v] : 0;
    }
    stage_sets_.resize(p_.size() + 1);
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

  // What no stage of a plan below the best takes: a batch takes its pieces' time on every stage.
  double LongestStage() const { return goal_.batch ? best_ / batch_ : best_; }

  // Not above what any plan takes that goes on from the label.
  double Bound(const Label& label, const std::vector<int>& feeding, double work) const {
    const auto left = static_cast<double>(p_.devices - label.devices);
    if (left <= 0) return kInfinity;
    if (!goal_.batch) return std::max(label.value, work / left);
    double longest = label.longest;
    for (size_t i = 0; i < feeding.size(); ++i) {
      longest = std::max(longest, label.paths[i] + path_to_[feeding[i]]);
    }
    return std::max(label.value + longest, batch_ * (work / left));
  }

  // [operator] Outside the upset the least time of one device, and of its messages to the upset.
  std::vector<double> LeftOf(Mask upset) const {
    std::vector<double> left(p_.size());
    for (int v = 0; v < p_.size(); ++v) left[v] = (upset >> v & 1) != 0 ? 0 : least_[v];
    for (const PlanEdge& edge : p_.edges) {
      const bool crosses = (upset >> edge.to & 1) != 0 && (upset >> edge.from & 1) == 0;
      if (crosses) left[edge.from] += 2 * edge.bytes / bandwidth_;
    }
    return left;
  }

  void ExtendUpset(Mask upset, const std::vector<Label*>& labels) {
    upset_ = upset;
    feeding_ = Feeding(upset);
    left_ = LeftOf(upset);
    double work = 0;
    for (double left : left_) work += left;
    open_.clear();
    for (const Label* label : labels) {
      if (Bound(*label, feeding_, work) < best_) open_.push_back(label);
    }
    if (open_.empty()) return;
    most_devices_ = 0;
    for (const Label* label : open_) {
      most_devices_ = std::max(most_devices_, p_.devices - label->devices);
    }
    if (operator_sets_.size() > kMostSets) operator_sets_.clear();
    Extend(0, 0, 0, 0);
  }

  // Goes on with the operators from place `from` of the order; `stage` has some before it.
  void Extend(size_t from, Mask stage, int size, double work) {
    if (gave_up_ || (gave_up_ = !effort_.Spend(1))) return;
    if (stage != 0 && work / static_cast<double>(most_devices_) >= LongestStage()) return;
    size_t i = from;
    while (i < order_.size() && !CanAdd(order_[i], stage)) ++i;
    if (i == order_.size()) {
      if (stage != 0) AddStage(stage, size);
      return;
    }
    const int v = order_[i];
    stage_sets_[size + 1] = stage_sets_[size];
    sets_.Add(v, &stage_sets_[size + 1]);
    if (sets_.FitsAlone(stage_sets_[size + 1])) {
      Extend(i + 1, stage | Mask{1} << v, size + 1, work + left_[v]);
    }
    Extend(i + 1, stage, size, work);
  }

  bool CanAdd(int v, Mask stage) const {
    return (upset_ >> v & 1) == 0 && (feeds_[v] & ~(upset_ | stage)) == 0;
  }

  // Where variants are chosen, choices are kept.
  OperatorSet* SetOf(Mask stage, int size) {
    if (!choice_) return &stage_sets_[size];
    return &operator_sets_.try_emplace(stage, stage_sets_[size]).first->second;
  }

  void AddStage(Mask stage, int size) {
    gave_up_ = store_.size() > kMostLabels;
    OperatorSet* set = SetOf(stage, size);
    bounds_.clear();
    for (const StageShape shape : sets_.shapes()) {
      if (shape.data > most_devices_) break;
      effort_.Spend(1);
      bounds_.push_back(sets_.TimeBound(*set, shape));
    }
    const Mask upset = upset_ | stage;
    after_ = Feeding(upset);
    after_place_.clear();
    for (int v : after_) {
      const auto at = std::lower_bound(feeding_.begin(), feeding_.end(), v);
      const bool was = at != feeding_.end() && *at == v;
      after_place_.push_back(was ? static_cast<int>(at - feeding_.begin()) : -1);
    }
    work_after_ = 0;
    for (double left : LeftOf(upset)) work_after_ += left;
    others_ = &waiting_[__builtin_popcountll(upset)][upset];
    for (const Label* label : open_) AddStageTo(*label, stage, set);
  }

  void AddStageTo(const Label& next, Mask stage, OperatorSet* set) {
    int64_t behind = 0;
    double path = 0;
    for (size_t i = 0; i < feeding_.size(); ++i) {
      if ((stage >> feeding_[i] & 1) == 0) continue;
      behind = std::max(behind, next.samples[i]);
      path = std::max(path, next.paths[i]);
    }
    for (size_t i = 0; i < bounds_.size(); ++i) {
      const StageShape shape = sets_.shapes()[i];
      if (next.devices + shape.data > p_.devices) break;
      if (bounds_[i] >= LongestStage()) continue;
      effort_.Spend(4);
      const int64_t own = sets_.SamplesOf(shape);
      Label& label = added_;
      label.in_flight = (behind + own + own - 1) / own;
      const double time = sets_.Time(set, shape, label.in_flight);
      if (time >= LongestStage() || std::isinf(time)) continue;
      const double steady = goal_.batch ? std::max(batch_ - Own(shape), 0.0) * time : time;
      const double own_path = goal_.batch ? path + Own(shape) * time : 0;
      label.value = std::max(next.value, steady);
      label.longest = std::max(next.longest, own_path);
      label.devices = next.devices + shape.data;
      if (label.Value() >= best_) continue;
      label.next = &next;
      label.merged = next.merged;
      label.stage = stage;
      label.shape = shape;
      PutBehind(next, behind + own, own_path, &label);
      if ((upset_ | stage) == all_ || Bound(label, after_, work_after_) < best_) {
        Add(upset_ | stage, label);
      }
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

  void PutBehind(const Label& next, int64_t samples, double path, Label* label) const {
    label->samples.assign(after_.size(), 0);
    label->paths.assign(after_.size(), 0);
    const bool ample = std::isinf(p_.memory_bytes);
    for (size_t i = 0; i < after_.size(); ++i) {
      const bool feeds = (feeds_[after_[i]] & label->stage) != 0;
      const int at = after_place_[i];
      if (!ample) {
        label->samples[i] = std::max(feeds ? samples : 0, at >= 0 ? next.samples[at] : 0);
      }
      label->paths[i] = std::max(feeds ? path : 0, at >= 0 ? next.paths[at] : 0);
    }
  }

  void Add(Mask upset, const Label& label) {
    if (upset == all_ && label.merged) {
      merged_best_ = std::min(merged_best_, label.Value());
    } else if (store_.Add(label, others_) && upset == all_) {
      best_ = label.Value();
    }
  }

  std::vector<PlanStage> StagesOf(const Label* label) const {
    std::vector<PlanStage> stages;
    for (; label->stage != 0; label = label->next) {
      std::vector<int> operators;
      for (int v = 0; v < p_.size(); ++v) {
        if ((label->stage >> v & 1) != 0) operators.push_back(v);
      }
      stages.push_back(sets_.StageOf(sets_.Make(operators), label->shape, label->in_flight));
    }
    return stages;
  }

  const OperatorSets& sets_;
  const PlanProblem& p_;
  const GraphGoal goal_;
  double best_, merged_best_ = kInfinity;
  SearchEffort& effort_;
  bool gave_up_ = false;
  const double bandwidth_;
  const double batch_;  // in the problem's micro-batches
  Mask all_ = 0;
  std::vector<int> order_;       // from the sinks
  std::vector<Mask> feeds_;      // [operator]
  std::vector<double> least_;    // [operator] time of one device
  std::vector<double> left_;     // [operator] and of its messages to the upset
  std::vector<double> path_to_;  // [operator] of a batch: least time of a path that ends with it
  bool choice_ = false;          // of variants
  std::vector<std::map<Mask, std::vector<Label*>>> waiting_;  // [size of the upset]
  LabelStore store_;
  std::unordered_map<Mask, OperatorSet> operator_sets_;
  // That is being extended: the upset, what feeds it, its labels, and the devices that they leave.
  Mask upset_ = 0;
  std::vector<int> feeding_;
  std::vector<const Label*> open_;
  int64_t most_devices_ = 0;
  std::vector<OperatorSet> stage_sets_;  // [operators of the stage so far]
  std::vector<double> bounds_;           // [shape] of the stage's time
  // What is added: what feeds the upset with the stage, its places in `feeding_` or -1, the rest's
  // work, and the labels that are there.
  std::vector<int> after_, after_place_;
  double work_after_ = 0;
  std::vector<Label*>* others_ = nullptr;
  Label added_;
};

}  // namespace

GraphExactResult BetterGraphPlan(const OperatorSets& sets, const GraphGoal& goal,
                                 const GraphExactOptions& options, SearchEffort* effort) {
  return ExactGraphSearch(sets, goal, options, effort).Run();
}

}  // namespace pipelab
