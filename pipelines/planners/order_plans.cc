#include "pipelines/planners/order_plans.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace pipelab {
namespace {

constexpr size_t kMostLabelsAlike = 8;     // with one number of devices
constexpr int64_t kMostFeeding = 1 << 20;  // over all places, beside one a place

struct OrderLabel {
  double value = 0;     // the longest stage, or what is left of the batch at its pace
  double path = 0;      // the longest so far; 0 unless it is of the batch
  int64_t samples = 0;  // most in flight at an end; 0 where memory is ample
  int64_t devices = 0;
  int last = 0;  // its first stage has the operators up to here
  StageShape shape;
  int64_t in_flight = 0;
  const OrderLabel* next = nullptr;
  // [operator that feeds what is planned]
  std::vector<int64_t> samples_behind;
  std::vector<double> path_behind;
};

class OrderSearch {
 public:
  OrderSearch(const OperatorSets& sets, const std::vector<int>& order, const GraphGoal& goal,
              double known, SearchEffort* effort)
      : sets_(sets),
        p_(sets.problem()),
        order_(order),
        goal_(goal),
        known_(known),
        effort_(*effort),
        size_(static_cast<int>(order.size())),
        batch_(BatchPieces(p_)) {}

  std::vector<PlanStage> Run() {
    if (!Prepare()) return {};
    labels_[size_].emplace_back();
    for (int last = size_; last > 0; --last) {
      if (!labels_[last].empty() && !ExtendFrom(last)) return {};
    }
    const OrderLabel* best = nullptr;
    for (const OrderLabel& label : labels_[0]) {
      if (best == nullptr || Value(label) < Value(*best)) best = &label;
    }
    return best == nullptr || Value(*best) >= known_ ? std::vector<PlanStage>() : StagesOf(best);
  }

 private:
  double Value(const OrderLabel& label) const { return label.value + label.path; }

  // False: the order is left.
  bool Prepare() {
    memory_matters_ = MemoryMatters(sets_.Make(order_));
    feeding_.resize(size_ + 1);
    if (tracks() && !FindFeeding()) return false;
    labels_.resize(size_ + 1);
    behind_place_.assign(p_.size(), -1);
    feeds_run_.assign(p_.size(), -1);
    work_before_.resize(size_ + 1);
    for (int i = 0; i < size_; ++i) {
      work_before_[i + 1] = work_before_[i] + sets_.LeastWork(order_[i]);
    }
    for (const StageShape shape : sets_.shapes()) {
      most_own_ = std::max(most_own_, Own(shape));
    }
    return true;
  }

  // False: there are too many.
  bool FindFeeding() {
    std::vector<int> place(p_.size()), until(size_);  // [place] of the last that it feeds
    for (int i = 0; i < size_; ++i) place[order_[i]] = i;
    int64_t feeding = 0;
    for (int i = 0; i < size_; ++i) {
      until[i] = i;
      for (int e : p_.operators[order_[i]].out_edges) {
        until[i] = std::max(until[i], place[p_.edges[e].to]);
      }
      feeding += until[i] - i;
    }
    if (feeding > kMostFeeding + size_) return false;
    for (int i = 0; i < size_; ++i) {
      for (int j = i + 1; j <= until[i]; ++j) feeding_[j].push_back(order_[i]);
    }
    return true;
  }

  // Whether there are plans that do not fit.
  bool MemoryMatters(const OperatorSet& all) const {
    if (std::isinf(p_.memory_bytes)) return false;
    if (!all.has_fastest) return true;
    double most = 0;
    for (const StageShape shape : sets_.shapes()) {
      most = std::max(most, static_cast<double>(sets_.SamplesOf(shape)));
    }
    const double samples = most * (std::min<double>(static_cast<double>(p_.devices), size_) + 1);
    return all.fastest_in_flight * samples / static_cast<double>(p_.micro_batch_size) +
               all.fastest_fixed >
           p_.memory_bytes;
  }

  bool tracks() const { return goal_.batch || (memory_matters_ && !goal_.sequence); }
  double Own(StageShape shape) const {
    return static_cast<double>(sets_.SamplesOf(shape)) / static_cast<double>(p_.micro_batch_size);
  }

  // Stages in front of what is planned from place `last` on. False: stopped.
  bool ExtendFrom(int last) {
    const std::vector<int>& feeding = feeding_[last];
    for (size_t i = 0; i < feeding.size(); ++i) behind_place_[feeding[i]] = static_cast<int>(i);
    std::vector<std::pair<int64_t, double>> behind(labels_[last].size());  // samples, path
    for (size_t l = 0; l < behind.size() && goal_.sequence; ++l) {
      behind[l].first = labels_[last][l].devices * p_.micro_batch_size;
    }
    OperatorSet run;
    bool stopped = false;
    for (int first = last - 1; first >= 0 && !stopped; --first) {
      const int v = order_[first];
      sets_.Add(v, &run);
      for (int e : p_.operators[v].in_edges) feeds_run_[p_.edges[e].from] = last;
      if (behind_place_[v] >= 0) {
        for (size_t l = 0; l < behind.size(); ++l) {
          const OrderLabel& label = labels_[last][l];
          behind[l].first = std::max(behind[l].first, label.samples_behind[behind_place_[v]]);
          behind[l].second = std::max(behind[l].second, label.path_behind[behind_place_[v]]);
        }
      }
      if (sets_.LeastTime(run, p_.devices) > LongestStage()) break;
      AddStages(first, last, &run, behind);
      stopped = !effort_.Spend(1 + static_cast<int64_t>(sets_.shapes().size()));
    }
    for (int v : feeding) behind_place_[v] = -1;
    return !stopped;
  }

  // What no stage of a plan below the known one takes.
  double LongestStage() const {
    if (!goal_.batch) return std::min(goal_.longest_stage, known_);
    const double rest = batch_ - most_own_;
    return rest <= 0 ? goal_.longest_stage : std::min(goal_.longest_stage, known_ / rest);
  }

  void AddStages(int first, int last, OperatorSet* run,
                 const std::vector<std::pair<int64_t, double>>& behind) {
    for (const StageShape shape : sets_.shapes()) {
      if (shape.data > p_.devices) break;
      const double bound = sets_.TimeBound(*run, shape);
      if (bound > LongestStage()) continue;
      const int64_t own = sets_.SamplesOf(shape);
      effort_.Spend(static_cast<int64_t>(behind.size()));
      for (size_t l = 0; l < behind.size(); ++l) {
        const OrderLabel& label = labels_[last][l];
        OrderLabel next;
        next.devices = label.devices + shape.data;
        if (next.devices > p_.devices || (first > 0 && next.devices == p_.devices)) continue;
        next.in_flight = (behind[l].first + own + own - 1) / own;
        const double time = memory_matters_ ? sets_.QuickTime(run, shape, next.in_flight) : bound;
        if (time > bound) effort_.Spend(static_cast<int64_t>(run->operators.size()));
        if (time > LongestStage()) continue;
        next.value =
            std::max(label.value, goal_.batch ? std::max(batch_ - Own(shape), 0.0) * time : time);
        const double path = goal_.batch ? behind[l].second + Own(shape) * time : 0;
        next.path = std::max(label.path, path);
        if (!CanBeat(first, next)) continue;
        next.last = last;
        next.shape = shape;
        next.next = &label;
        if (tracks()) PutBehind(first, last, behind[l].first + own, path, label, &next);
        Insert(std::move(next), &labels_[first]);
      }
    }
  }

  bool CanBeat(int first, const OrderLabel& label) const {
    if (Value(label) >= known_) return false;
    if (first == 0) return true;
    const double left = work_before_[first] / static_cast<double>(p_.devices - label.devices);
    if (left > LongestStage()) return false;
    return !goal_.batch || (batch_ - most_own_) * left + label.path < known_;
  }

  void PutBehind(int first, int last, int64_t samples, double path, const OrderLabel& label,
                 OrderLabel* next) const {
    for (int v : feeding_[first]) {
      const int place = behind_place_[v];
      int64_t most = place >= 0 ? label.samples_behind[place] : 0;
      double longest = place >= 0 ? label.path_behind[place] : 0;
      if (feeds_run_[v] == last) {
        most = std::max(most, samples);
        longest = std::max(longest, path);
      }
      next->samples_behind.push_back(most);
      next->path_behind.push_back(longest);
      if (memory_matters_) next->samples = std::max(next->samples, most);
    }
  }

  static bool NotWorse(const OrderLabel& a, const OrderLabel& b) {
    return a.devices <= b.devices && a.value <= b.value && a.path <= b.path &&
           a.samples <= b.samples;
  }

  void Insert(OrderLabel label, std::deque<OrderLabel>* labels) const {
    size_t same = 0;
    for (const OrderLabel& other : *labels) {
      if (NotWorse(other, label)) return;
      same += other.devices == label.devices ? 1 : 0;
    }
    labels->erase(std::remove_if(labels->begin(), labels->end(),
                                 [&](const OrderLabel& other) { return NotWorse(label, other); }),
                  labels->end());
    if (same < kMostLabelsAlike) labels->push_back(std::move(label));
  }

  std::vector<PlanStage> StagesOf(const OrderLabel* label) const {
    std::vector<PlanStage> stages;
    for (int first = 0; label->next != nullptr; label = label->next) {
      const std::vector<int> run(order_.begin() + first, order_.begin() + label->last);
      stages.push_back(sets_.StageOf(sets_.Make(run), label->shape, label->in_flight));
      first = label->last;
    }
    return stages;
  }

  const OperatorSets& sets_;
  const PlanProblem& p_;
  const std::vector<int>& order_;
  const GraphGoal goal_;
  const double known_;
  SearchEffort& effort_;
  const int size_;
  const double batch_;  // in the problem's micro-batches, as `most_own_`
  double most_own_ = 0;
  bool memory_matters_ = false;
  std::vector<std::deque<OrderLabel>> labels_;  // [place that they start at]
  std::vector<double> work_before_;             // [place]
  std::vector<std::vector<int>> feeding_;       // [place] operators before that feed what follows
  std::vector<int> behind_place_;               // [operator] among those that feed what is planned
  std::vector<int> feeds_run_;                  // [operator] place of the run that it feeds
};

}  // namespace

std::vector<PlanStage> BestOfOrder(const OperatorSets& sets, const std::vector<int>& order,
                                   const GraphGoal& goal, double known, SearchEffort* effort) {
  return OrderSearch(sets, order, goal, known, effort).Run();
}

}  // namespace pipelab
