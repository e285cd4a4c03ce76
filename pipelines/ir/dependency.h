// What must come before an action: the one place where readiness is written down. The validator,
// Lower and every order-building scheduler ask here.
//
//   EventIndex index(schedule);
//   ForEachDependency(schedule, action, [&](const Event& e) { ready &= done[index(e)]; });
//   ForEachResult(schedule, action, [&](const Event& e) { done[index(e)] = true; });
//
// Actions depend on events and not on actions, because a gradient may come from a fused backward
// (B) or from its input part (I), and the consumer does not care.
#ifndef PIPELAB_PIPELINES_IR_DEPENDENCY_H_
#define PIPELAB_PIPELINES_IR_DEPENDENCY_H_

#include <cstdint>

#include "pipelines/ir/schedule.h"

namespace pipelab {

enum class EventKind : uint8_t {
  kOutput,          // the stage's activation for a micro-batch slice exists (F)
  kInputGradient,   // the gradient at the stage's input exists (B or I)
  kWeightGradient,  // its share of the weight gradient is accumulated (B or W)
  kRecomputed,      // dropped activations are rebuilt (R)
};
inline constexpr int kNumEventKinds = 4;

struct Event {
  EventKind kind;
  int stage, micro_batch, slice;
};

// Dense numbering of a schedule's events.
class EventIndex {
 public:
  explicit EventIndex(const Schedule& s)
      : stages_(s.num_stages()), micro_batches_(s.num_micro_batches), slices_(s.num_slices) {}
  int64_t operator()(const Event& e) const {
    return ((static_cast<int64_t>(e.kind) * stages_ + e.stage) * micro_batches_ + e.micro_batch) *
               slices_ +
           e.slice;
  }
  int64_t size() const { return int64_t{kNumEventKinds} * stages_ * micro_batches_ * slices_; }

 private:
  int64_t stages_, micro_batches_, slices_;
};

// Calls fn(event) for each event that must be over before `a` starts. `recomputed` says whether the
// action's stage recomputes. Weight versions add one more condition, the step that makes the
// version, which the validator checks in device order.
template <typename Fn>
void ForEachDependency(const StageGraph& graph, int num_slices, bool recomputed, const Action& a,
                       Fn&& fn) {
  switch (a.kind) {
    case ActionKind::kForward:
      for (int e : graph.in_edges[a.stage]) {
        fn(Event{EventKind::kOutput, graph.edges[e].from, a.micro_batch, a.slice});
      }
      // Causal attention: a token slice reads the keys and values of the earlier ones.
      if (a.slice > 0) fn(Event{EventKind::kOutput, a.stage, a.micro_batch, a.slice - 1});
      return;
    case ActionKind::kRecompute:
      fn(Event{EventKind::kOutput, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      fn(Event{recomputed ? EventKind::kRecomputed : EventKind::kOutput, a.stage, a.micro_batch,
               a.slice});
      for (int e : graph.out_edges[a.stage]) {
        fn(Event{EventKind::kInputGradient, graph.edges[e].to, a.micro_batch, a.slice});
      }
      if (a.slice + 1 < num_slices) {
        fn(Event{EventKind::kInputGradient, a.stage, a.micro_batch, a.slice + 1});
      }
      return;
    case ActionKind::kBackwardWeight:
      fn(Event{EventKind::kInputGradient, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kStep:
      return;
  }
}

// Calls fn(event) for each event that `a` brings about.
template <typename Fn>
void ForEachResult(const Action& a, Fn&& fn) {
  switch (a.kind) {
    case ActionKind::kForward:
      fn(Event{EventKind::kOutput, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kRecompute:
      fn(Event{EventKind::kRecomputed, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kBackward:
      fn(Event{EventKind::kInputGradient, a.stage, a.micro_batch, a.slice});
      fn(Event{EventKind::kWeightGradient, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kBackwardInput:
      fn(Event{EventKind::kInputGradient, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kBackwardWeight:
      fn(Event{EventKind::kWeightGradient, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kStep:
      return;
  }
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_DEPENDENCY_H_
