// Makes a device plan (device_plan.h) in two passes over the device's list: first which tensors it
// sends, receives and keeps, and with which rows (device_planner_values.cc), then a step for each
// instruction (device_plan.cc).
#ifndef PIPELAB_PIPELINES_RUNTIME_DEVICE_PLANNER_H_
#define PIPELAB_PIPELINES_RUNTIME_DEVICE_PLANNER_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/flow_maps.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/row_split.h"
#include "pipelines/runtime/device_plan.h"
#include "pipelines/runtime/held_stages.h"

namespace pipelab {

class DevicePlanner {
 public:
  DevicePlanner(const Program& program, int device, HeldStages held)
      : program_(program),
        schedule_(program.schedule),
        device_(device),
        held_(std::move(held)),
        flows_(program.schedule) {}

  absl::StatusOr<DevicePlan> Make();

 private:
  // A tensor of the schedule, at one end of an edge: its activation, or the gradient of that, for a
  // slice of a micro-batch of the end's stage. What several passes of the consumer read is the
  // first one's.
  using Value = std::tuple<int, bool, int, int>;  // edge, gradient, micro-batch, slice

  struct Source {  // a value that this device produces
    int32_t send_buffer = -1;
    int sends_left = 0;
    absl::InlinedVector<Part, 1> local;  // rows of the producer's tensor
  };

  absl::Status Error(absl::string_view place, absl::string_view what) const;

  absl::Status FindValues(const Instruction& i);
  absl::Status FindLocalRows(const Action& a);
  absl::Status KeepRows(const Action& a, const Value& made, const Value& taken);
  absl::Status PlanInstruction(const Instruction& i);
  absl::Status PlanCompute(const Instruction& i);
  absl::Status PlanReceive(const Instruction& i);
  absl::Status PlanHop(const Instruction& i, const Message& m);
  absl::Status PlanSend(const Instruction& i);
  absl::Status PlanCollectives(const Instruction& i);

  // The rows of `fraction` in the tensor that the device holds of a stage.
  absl::StatusOr<Part> Rows(const HeldStage& stage, const TensorSpec& spec, Fraction fraction,
                            const std::string& place) const {
    absl::StatusOr<Part> part = stage.Rows(spec, fraction);
    if (!part.ok()) return Error(place, part.status().message());
    return part;
  }
  bool Consumes(const Action& a) const {
    return a.kind == ActionKind::kForward || a.kind == ActionKind::kBackward ||
           a.kind == ActionKind::kBackwardInput;
  }
  const std::vector<int>& EdgesOut(const Action& a) const {
    return a.kind == ActionKind::kForward ? schedule_.stages.out_edges[a.stage]
                                          : schedule_.stages.in_edges[a.stage];
  }
  const std::vector<int>& EdgesIn(const Action& a) const {
    return a.kind == ActionKind::kForward ? schedule_.stages.in_edges[a.stage]
                                          : schedule_.stages.out_edges[a.stage];
  }
  // Ends of a value: the stage that makes it, the one that takes it. A gradient runs against its
  // edge.
  int Producer(const Value& v) const {
    const StageGraph::Edge& e = schedule_.stages.edges[std::get<0>(v)];
    return std::get<1>(v) ? e.to : e.from;
  }
  int Consumer(const Value& v) const {
    const StageGraph::Edge& e = schedule_.stages.edges[std::get<0>(v)];
    return std::get<1>(v) ? e.from : e.to;
  }
  // The stage at the end of a value's producer, and at that of its consumer.
  const HeldStage& ProducerStage(const Value& v) const {
    return held_.Of(std::get<2>(v), Producer(v));
  }
  const HeldStage& ConsumerStage(const Value& v) const {
    return held_.Of(std::get<2>(v), Consumer(v));
  }
  const TensorSpec* ProducerSpec(const Value& v) const {
    return held_.SpecAt(std::get<2>(v), std::get<3>(v), Producer(v), std::get<0>(v),
                        std::get<1>(v));
  }
  const TensorSpec* ConsumerSpec(const Value& v) const {
    return held_.SpecAt(std::get<2>(v), std::get<3>(v), Consumer(v), std::get<0>(v),
                        !std::get<1>(v));
  }
  // A message is a part of a value, or all of it, at either end.
  struct MessageEnd {
    Value value;
    Fraction rows;  // of the value's micro-batch
  };
  MessageEnd EndOf(const Message& m, bool consumer) const {
    const StageGraph::Edge& e = schedule_.stages.edges[m.edge];
    const int messages = MessagesOf(schedule_, e, consumer == m.gradient ? e.from : e.to);
    const int64_t first = int64_t{m.micro_batch % messages} * m.row_parts;
    const int samples = m.micro_batch / messages;
    const int pass = consumer ? flows_.Along(m.edge, m.gradient).FirstReader(samples) : samples;
    return {Value(m.edge, m.gradient, pass, m.slice),
            {first + m.row_begin, first + m.row_end, int64_t{messages} * m.row_parts}};
  }

  const Program& program_;
  const Schedule& schedule_;
  const int device_;
  HeldStages held_;
  const FlowMaps flows_;

  DevicePlan plan_;
  std::vector<bool> recomputed_;
  absl::flat_hash_map<Value, Source> sources_;                       // at the producer's end
  absl::flat_hash_map<Value, absl::InlinedVector<Part, 1>> inputs_;  // at the consumer's
  absl::flat_hash_map<int32_t, int32_t> receive_of_message_;
  absl::flat_hash_map<std::pair<OpCode, int32_t>, int32_t> collective_;  // begun: by its begin
  absl::flat_hash_set<int32_t> posted_;  // messages received but not waited for so far in the list
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_DEVICE_PLANNER_H_
