// What must come before an action: the one place where readiness is written down. The validator,
// Lower and every order-building scheduler ask here.
//
//   EventIndex index(schedule);
//   ForEachDependency(schedule, recomputed, action,
//                     [&](const Event& e) { ready &= done[index(e)]; });
//   ForEachResult(action, [&](const Event& e) { done[index(e)] = true; });
//
// Actions depend on events and not on actions, because a gradient may come from a fused backward
// (B) or from its input part (I), and the consumer does not care. Which passes at the other end of
// an edge an action waits for, the edge's reads say (flow.h).
#ifndef PIPELAB_PIPELINES_IR_DEPENDENCY_H_
#define PIPELAB_PIPELINES_IR_DEPENDENCY_H_

#include <cstdint>
#include <vector>

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

// Dense numbering of a schedule's (stage, micro-batch of the stage, slice).
class CellIndex {
 public:
  explicit CellIndex(const Schedule& s) : slices_(s.num_slices) {
    first_.push_back(0);
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      first_.push_back(first_.back() + int64_t{s.MicroBatches(stage)} * slices_);
    }
  }
  int64_t operator()(int stage, int micro_batch, int slice) const {
    return first_[stage] + micro_batch * slices_ + slice;
  }
  int64_t size() const { return first_.back(); }

 private:
  int64_t slices_;
  std::vector<int64_t> first_;  // [stage], and the end
};

// Dense numbering of a schedule's events.
class EventIndex {
 public:
  explicit EventIndex(const Schedule& s) : cell_(s) {}
  int64_t operator()(const Event& e) const {
    return static_cast<int64_t>(e.kind) * cell_.size() + cell_(e.stage, e.micro_batch, e.slice);
  }
  int64_t size() const { return int64_t{kNumEventKinds} * cell_.size(); }

 private:
  CellIndex cell_;
};

// Calls fn(event) for each event that must be over before `a` starts. `recomputed` says whether the
// action's stage recomputes. Two conditions come on top, which the validator checks in device
// order: the step that makes a weight version, and a reload after its offload and before the
// backward.
template <typename Fn>
void ForEachDependency(const Schedule& s, bool recomputed, const Action& a, Fn&& fn) {
  const StageGraph& graph = s.stages;
  const auto read = [&](EventKind kind, int maker, const PassMap& passes) {
    for (int m : passes.Sources(a.micro_batch)) fn(Event{kind, maker, m, a.slice});
  };
  switch (a.kind) {
    case ActionKind::kForward:
      for (int e : graph.in_edges[a.stage]) {
        const StageGraph::Edge& edge = graph.edges[e];
        read(EventKind::kOutput, edge.from, s.Outputs(edge));
      }
      // Causal attention: a token slice reads the keys and values of the earlier ones.
      if (a.slice > 0) fn(Event{EventKind::kOutput, a.stage, a.micro_batch, a.slice - 1});
      return;
    case ActionKind::kRecompute:
    case ActionKind::kOffload:
    case ActionKind::kReload:
      fn(Event{EventKind::kOutput, a.stage, a.micro_batch, a.slice});
      return;
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      fn(Event{recomputed ? EventKind::kRecomputed : EventKind::kOutput, a.stage, a.micro_batch,
               a.slice});
      for (int e : graph.out_edges[a.stage]) {
        const StageGraph::Edge& edge = graph.edges[e];
        read(EventKind::kInputGradient, edge.to, s.Gradients(edge));
      }
      if (a.slice + 1 < s.num_slices) {
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
    case ActionKind::kOffload:
    case ActionKind::kReload:
      return;
  }
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_DEPENDENCY_H_
