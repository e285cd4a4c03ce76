// What runs of guides (guided_order.h) look things up in. Private to guided_order.
#ifndef PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_
#define PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {

inline constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// When the inputs of passes arrive.
class Arrivals {
 public:
  Arrivals(const Schedule& schedule, const PassLengths& lengths)
      : schedule_(schedule),
        lengths_(lengths),
        micro_batches_(schedule.num_micro_batches),
        forward_(size_t(schedule.num_stages()) * micro_batches_, kUnknown),
        input_(forward_) {
    std::fill_n(forward_.begin(), micro_batches_, 0);
  }

  int64_t Length(const Action& a) const {
    if (a.kind == ActionKind::kForward) return lengths_.forward[a.stage];
    return a.kind == ActionKind::kBackwardInput
               ? lengths_.recompute[a.stage] + lengths_.backward_input[a.stage]
               : lengths_.backward_weight[a.stage];
  }
  int64_t At(const Action& a) const {
    return (a.kind == ActionKind::kForward ? forward_ : input_)[Index(a.stage, a.micro_batch)];
  }
  struct Next {
    int device = -1;  // none where nothing waits for it
    Action action;
  };
  // `a` ends: when and where that makes something ready.
  std::pair<int64_t, Next> End(const Action& a, int64_t end) {
    const bool forward = a.kind == ActionKind::kForward;
    if (forward && a.stage + 1 == schedule_.num_stages()) {
      input_[Index(a.stage, a.micro_batch)] = end;
      return {end, {DeviceOf(a.stage, a.micro_batch), BackwardInput(a.stage, a.micro_batch)}};
    }
    if (a.kind == ActionKind::kBackwardWeight || (!forward && a.stage == 0)) return {end, Next()};
    const int next = forward ? a.stage + 1 : a.stage - 1;
    const int device = DeviceOf(next, a.micro_batch);
    if (device != DeviceOf(a.stage, a.micro_batch))
      end += lengths_.hop[std::min<int>(a.stage, next)];
    (forward ? forward_ : input_)[Index(next, a.micro_batch)] = end;
    return {end,
            {device, forward ? Forward(next, a.micro_batch) : BackwardInput(next, a.micro_batch)}};
  }

 private:
  size_t Index(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * micro_batches_ + micro_batch;
  }
  int DeviceOf(int stage, int micro_batch) const {
    const Placement& p = schedule_.placement;
    return p.groups[p.replica_of_micro_batch[micro_batch]][stage][0];
  }

  const Schedule& schedule_;
  const PassLengths& lengths_;
  const int micro_batches_;
  std::vector<int64_t> forward_, input_;  // [stage][micro-batch]
};

// The actions of a device's guide that are still to do, and what it would hold if it did them.
class ToDo {
 public:
  explicit ToDo(const std::vector<Action>& guide) {
    while (leaves_ < guide.size()) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
    for (size_t i = 0; i < guide.size(); ++i) {
      const int held = guide[i].kind == ActionKind::kForward ? 1 : -1;
      nodes_[leaves_ + i] = {held, held};
    }
    for (size_t n = leaves_; n-- > 1;) nodes_[n] = Join(nodes_[2 * n], nodes_[2 * n + 1]);
  }

  void Done(size_t at) {
    size_t n = leaves_ + at;
    nodes_[n] = Node();
    for (n /= 2; n > 0; n /= 2) nodes_[n] = Join(nodes_[2 * n], nodes_[2 * n + 1]);
  }
  // The first action after which it would hold `more` more than now; past the last where none is.
  size_t FirstToReach(int more) const {
    if (nodes_[1].most < more) return leaves_;
    size_t n = 1;
    for (; n < leaves_;) {
      n *= 2;
      if (nodes_[n].most >= more) continue;
      more -= nodes_[n].sum;
      ++n;
    }
    return n - leaves_;
  }

 private:
  struct Node {
    int sum = 0;
    int most = std::numeric_limits<int>::min() / 2;  // of its beginnings
  };
  static Node Join(const Node& a, const Node& b) {
    return {a.sum + b.sum, std::max(a.most, a.sum + b.most)};
  }

  size_t leaves_ = 1;
  std::vector<Node> nodes_;  // a binary tree
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_GUIDED_RUN_H_
