#include "pipelines/planners/graphpipe_exact.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/time/clock.h"

namespace pipelab {
namespace {

using Mask = uint64_t;
// Pairs of these are tried as stages.
constexpr size_t kMostUpsets = 300;

struct Label {
  double value = 0;
  int64_t devices = 0;
  std::vector<int64_t> samples;  // [operator that feeds the upset, ascending]
  const Label* next = nullptr;   // and the stage in front of it
  OperatorSet* set = nullptr;
  StageShape shape;
  int64_t in_flight = 0;
};

class Search {
 public:
  Search(const OperatorSets& sets, double known, int64_t effort, absl::Time deadline)
      : sets_(sets), p_(sets.problem()), best_(known), effort_(effort), deadline_(deadline) {}

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
          if (!CanBeat(upset, *label)) continue;
          label_ = label;
          upset_ = upset;
          Extend(0, 0, 0);
          if (effort_ < 0) return result;
        }
      }
    }
    result.complete = true;
    const Label* best = nullptr;
    for (const Label* label : waiting_.back()[all]) {
      if (best == nullptr || label->value < best->value) best = label;
    }
    if (best != nullptr) result.stages = StagesOf(best);
    return result;
  }

 private:
  void Prepare() {
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

  bool CanBeat(Mask upset, const Label& label) const {
    double work = 0;
    for (int v = 0; v < p_.size(); ++v) work += (upset >> v & 1) != 0 ? 0 : least_[v];
    const auto left = static_cast<double>(p_.devices - label.devices);
    return label.value < best_ && left > 0 && work / left < best_;
  }

  // Goes on with the operators from place `from` of the order; `stage` has some before it.
  void Extend(size_t from, Mask stage, double work) {
    if (effort_ < 0) return;
    if (stage != 0 && work / static_cast<double>(sets_.most_copies()) >= best_) return;
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
      set = std::make_unique<OperatorSet>(sets_.Make(std::move(operators)));
    }
    return set.get();
  }

  void AddStage(Mask stage) {
    if (--effort_ < 0 || ((effort_ & 255) == 0 && absl::Now() > deadline_)) {
      effort_ = -1;
      return;
    }
    OperatorSet* set = SetOf(stage);
    int64_t behind = 0;
    const std::vector<int> feeding = Feeding(upset_);
    for (size_t i = 0; i < feeding.size(); ++i) {
      if ((stage >> feeding[i] & 1) != 0) behind = std::max(behind, label_->samples[i]);
    }
    for (StageShape shape; shape.size < sets_.num_sizes(); ++shape.size) {
      for (shape.data = 1; label_->devices + shape.data <= p_.devices; shape.data *= 2) {
        if (!sets_.Allows(shape) || sets_.TimeBound(*set, shape) >= best_) continue;
        const int64_t own = sets_.SamplesOf(shape);
        const int64_t in_flight = (behind + own + own - 1) / own;
        const double time = sets_.Time(set, shape, in_flight);
        if (time >= best_ || std::isinf(time)) continue;
        Label label;
        label.value = std::max(label_->value, time);
        label.devices = label_->devices + shape.data;
        label.next = label_;
        label.set = set;
        label.shape = shape;
        label.in_flight = in_flight;
        label.samples = SamplesIn(stage, feeding, behind + own);
        Add(upset_ | stage, std::move(label));
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

  std::vector<int64_t> SamplesIn(Mask stage, const std::vector<int>& feeding,
                                 int64_t samples) const {
    std::vector<int64_t> result;
    for (int v : Feeding(upset_ | stage)) {
      int64_t most = (feeds_[v] & stage) != 0 ? samples : 0;
      const auto at = std::lower_bound(feeding.begin(), feeding.end(), v);
      if (at != feeding.end() && *at == v) {
        most = std::max(most, label_->samples[at - feeding.begin()]);
      }
      result.push_back(most);
    }
    return result;
  }

  static bool NotWorse(const Label& a, const Label& b) {
    if (a.value > b.value || a.devices > b.devices) return false;
    for (size_t i = 0; i < a.samples.size(); ++i) {
      if (a.samples[i] > b.samples[i]) return false;
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
    if (__builtin_popcountll(upset) == p_.size()) best_ = label.value;
    labels_.push_back(std::move(label));
    others.push_back(&labels_.back());
  }

  std::vector<PlanStage> StagesOf(const Label* label) const {
    std::vector<PlanStage> stages;
    for (; label->set != nullptr; label = label->next) {
      PlanStage stage;
      stage.layers = label->set->operators;
      stage.variants = sets_.Choose(*label->set, label->shape, label->in_flight).variants;
      stage.data = label->shape.data;
      stage.micro_batch_size = sets_.SamplesOf(label->shape);
      stages.push_back(std::move(stage));
    }
    return stages;
  }

  const OperatorSets& sets_;
  const PlanProblem& p_;
  double best_;
  int64_t effort_;
  const absl::Time deadline_;
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

ExactResult BetterGraphPlan(const OperatorSets& sets, double known_value, int64_t effort,
                            absl::Time deadline) {
  return Search(sets, known_value, effort, deadline).Run();
}

}  // namespace pipelab
