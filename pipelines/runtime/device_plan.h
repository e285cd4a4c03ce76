// One device's instruction list, resolved: modules, buffers, shapes and row ranges instead of edges
// and message numbers. Made once, so that the step itself looks nothing up.
//
//   PIPELAB_ASSIGN_OR_RETURN(DevicePlan plan, MakeDevicePlan(program, device, modules));
//   for (size_t i = 0; i < plan.steps.size(); ++i) ...   // as many as the device's instructions
//
// A *buffer* holds one tensor between the instruction that brings it and the one that takes it: an
// output that is waiting to be sent, or a (part of a) micro-batch's input. A stage's input has
// several parts when the stages' device groups or micro-batches differ in size; parts are put
// together when the compute starts.
//
// InvalidArgument when a module is missing, rows cannot be divided as the groups need, or the rows
// of some input do not arrive.
#ifndef PIPELAB_PIPELINES_RUNTIME_DEVICE_PLAN_H_
#define PIPELAB_PIPELINES_RUNTIME_DEVICE_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/collective_plan.h"
#include "pipelines/runtime/held_stages.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

struct InputPlan {
  const TensorSpec* spec = nullptr;
  // In row order, covering all rows; none where an edge brings no gradient.
  absl::InlinedVector<Part, 1> parts;
  bool is_zero = false;  // it will bring gradients of earlier micro-batches, and there is none yet
  bool again = false;    // a later pass reads it too: this one takes a copy
};

struct OutputPlan {
  const TensorSpec* spec = nullptr;
  bool taken = true;                   // false: nobody reads it
  int32_t send_buffer = -1;            // where sends take it from; -1: nothing is sent
  absl::InlinedVector<Part, 1> local;  // rows that this device consumes itself
};

struct ComputePlan {
  StageModule* module = nullptr;
  bool drop = false;  // of a forward: a recompute comes
  absl::InlinedVector<InputPlan, 1> inputs;
  absl::InlinedVector<OutputPlan, 1> outputs;
};

struct SendPlan {
  int peer = 0;
  StageModule* hop = nullptr;  // whose weights or gradients travel; null: `part` is sent
  bool gradient = false;       // of a hop
  Part part;
  bool last = true;  // the buffer is not needed any more
};

struct ReceivePlan {
  int peer = 0;
  StageModule* hop = nullptr;  // as in SendPlan
  bool gradient = false;
  int32_t buffer = -1;
  TensorSpec spec;
  int64_t bytes = 0;
};

struct DevicePlan {
  // What instruction i needs: an index into the list of its kind (a wait: into what it waits for).
  std::vector<int32_t> steps;
  std::vector<ComputePlan> computes;  // optimizer steps too
  std::vector<SendPlan> sends;
  std::vector<ReceivePlan> receives;
  std::vector<CollectivePlan> collectives;
  std::vector<StageModule*> host_copies;  // whose tensors move
  int32_t num_buffers = 0;
  std::vector<std::unique_ptr<TensorSpec>> specs;  // what the plans point to
};

// `modules`: [replica][stage] of this device, null where it does not hold the stage.
absl::StatusOr<DevicePlan> MakeDevicePlan(const Program& program, int device,
                                          const std::vector<std::vector<StageModule*>>& modules);

// Where each device is a tensor-parallel group of so many ranks, d * tensor_parallel + member:
// turns the plan's devices into the ranks of this member.
void MapToRanks(int tensor_parallel, int member, DevicePlan* plan);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_DEVICE_PLAN_H_
