// The stages that one device holds, their tensors' shapes, and which rows of a micro-batch they
// have: the geometry behind a device plan.
//
//   PIPELAB_ASSIGN_OR_RETURN(HeldStages held, HeldStages::Make(schedule, device, modules));
//   const HeldStage& stage = held.Of(micro_batch, 3);      // stage.module is null where not held
//   PIPELAB_ASSIGN_OR_RETURN(Part part, stage.Rows(spec, {1, 2, 6}));    // the second sixth
//
// InvalidArgument when a module is missing or rows cannot be divided.
#ifndef PIPELAB_PIPELINES_RUNTIME_HELD_STAGES_H_
#define PIPELAB_PIPELINES_RUNTIME_HELD_STAGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

// Rows [row_begin, row_end) of a module's tensor, and the buffer that they come from or go to.
struct Part {
  int32_t buffer = -1;
  int64_t row_begin = 0, row_end = 0;
  bool whole = true;  // all rows of the tensor
};

// A range of a micro-batch's rows: [begin, end) / parts.
struct Fraction {
  int64_t begin = 0, end = 1, parts = 1;
};

// What one stage of one replica is to the device.
struct HeldStage {
  StageModule* module = nullptr;
  int64_t member = 0, data_parallel_size = 1;  // the device in the stage's group
  // By place in the stage's edge lists, and shape (Schedule::ShapeOf).
  std::vector<std::vector<const TensorSpec*>> in_specs, out_specs;

  // The rows of `fraction` in the member's tensor.
  absl::StatusOr<Part> Rows(const TensorSpec& spec, Fraction fraction) const;
};

class HeldStages {
 public:
  // `modules`: [replica][stage].
  static absl::StatusOr<HeldStages> Make(const Schedule& schedule, int device,
                                         const std::vector<std::vector<StageModule*>>& modules);

  // `micro_batch` is the stage's, here and below.
  const HeldStage& Of(int micro_batch, int stage) const {
    return stages_[schedule_->ReplicaOf(stage, micro_batch)][stage];
  }
  const HeldStage& OfReplica(int replica, int stage) const { return stages_[replica][stage]; }

  // The shape of an edge's tensor at the stage it enters (`in`) or leaves.
  const TensorSpec* SpecAt(int micro_batch, int slice, int stage, int edge, bool in) const;

  // Keeps the specs that plans point to alive.
  std::vector<std::unique_ptr<TensorSpec>> TakeSpecs() && { return std::move(specs_); }

 private:
  const Schedule* schedule_ = nullptr;
  std::vector<std::vector<HeldStage>> stages_;  // [replica][stage]
  std::vector<std::unique_ptr<TensorSpec>> specs_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_HELD_STAGES_H_
