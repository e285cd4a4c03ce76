// A stage of integer arithmetic, for tests of the runtime: every value depends on the stage, the
// micro-batch, the slice, the row, the edge and the parameters, modulo a prime, so that a tensor
// that goes astray, comes twice, or meets the wrong parameters changes the result, exactly.
//
//   FakeStage stage(&arena, {.graph = &graph, .stage = 1, .rows = 12});
//   ... an Executor calls it ...
//   stage.parameters();                  // equal to SerialParameters() (fake_serial.h), or
//   something is wrong
//
// It refuses, with FailedPrecondition, passes in the wrong order (a backward without its forward, a
// weight gradient before the input gradient, a missing recompute). Kept tensors are charged to the
// arena.
#ifndef PIPELAB_TESTS_SUPPORT_FAKE_MODULE_H_
#define PIPELAB_TESTS_SUPPORT_FAKE_MODULE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

struct FakeStageConfig {
  const StageGraph* graph = nullptr;
  int stage = 0;
  int64_t rows = 12;             // of a smallest micro-batch's slice, over all group members
  int64_t micro_batch_size = 1;  // Schedule::MicroBatchSize
  int64_t width = 3;
  int64_t member = 0, data_parallel_size = 1;
  std::string tied = {};  // name of the tied parameter that the stage has, if any
  Shard shard = {};       // of its own parameters
  // Terms of the global norm, without which it then refuses to step: one for each stage and one for
  // ties, or more.
  int64_t norm_values = 0;
};

class FakeStage : public StageModule {
 public:
  FakeStage(Arena* arena, FakeStageConfig config);

  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override;
  absl::Status Recompute(const Action& a) override;
  absl::StatusOr<std::vector<Tensor>> Backward(const Action& a,
                                               std::vector<Tensor> output_gradients) override;
  absl::Status BackwardWeight(const Action& a) override;
  absl::StatusOr<std::vector<Tensor*>> Kept(const Action& a) override;
  absl::Status Step(const Action& a) override;
  TensorSpec InputSpec(int, int) const override { return Spec(); }
  TensorSpec OutputSpec(int, int) const override { return Spec(); }
  absl::StatusOr<Tensor> Gradients(absl::string_view parameter) override;
  absl::StatusOr<PartedTensor> BeginGather() override;
  absl::Status EndGather() override { return absl::OkStatus(); }
  absl::Status Release() override;
  TensorSpec HopSpec(bool gradient) const override;
  absl::StatusOr<Tensor> SendHop(bool gradient) override;
  absl::Status ReceiveHop(bool gradient, Tensor tensor) override;
  absl::StatusOr<PartedTensor> BeginScatter() override;
  absl::Status EndScatter() override;
  absl::StatusOr<Tensor> BeginNorm(const NormShare& share) override;
  absl::Status EndNorm(const Tensor& squares) override;
  int64_t library_ns() const override { return library_ns_; }

  // Values of the stage's own parameters, then of the tied ones. Not for sharded stages.
  std::vector<float> parameters() const;
  // Whether what this copy keeps is of these parameters.
  bool KeepsPartOf(const std::vector<float>& parameters) const;
  size_t in_flight() const { return stash_.size(); }

 private:
  // What a forward leaves for its backward.
  struct Stash {
    std::vector<Tensor> inputs;  // kept until the recompute of a forward that dropped x
    Tensor x;                    // the stage's combined input
    Tensor dy;                   // between I and W
    bool input_gradient_done = false;
  };

  TensorSpec Spec() const;
  Tensor Combine(const Action& a, const std::vector<Tensor>& inputs);
  absl::Status CheckGathered(const Action& a) const;
  void AccumulateWeightGradient(const Stash& stash);
  bool sharded_values() const {
    return config_.shard.divides() && config_.shard.sharding == Sharding::kFully;
  }
  bool sharded_gradients() const {
    return config_.shard.divides() && config_.shard.sharding != Sharding::kOptimizer;
  }
  // This copy's part of a padded whole; empty when it has none.
  Tensor PartOf(const Tensor& whole) const;
  Tensor SteppedGradient() const;
  absl::Status WrongOrder(const Action& a, absl::string_view why) const;
  int64_t Rows() const {
    return config_.rows * config_.micro_batch_size / config_.data_parallel_size;
  }
  // A row of the member's tensor, as a smallest micro-batch and a row of that.
  struct Place {
    int64_t micro_batch, row;
  };
  Place PlaceOf(const Action& a, int64_t row) const {
    const int64_t all = config_.rows * config_.micro_batch_size;
    const int64_t n = a.micro_batch * all + config_.member * Rows() + row;
    return {n / config_.rows, n % config_.rows};
  }

  Arena* const arena_;
  const FakeStageConfig config_;
  Tensor weight_, gradient_, tied_weight_, tied_gradient_;
  Tensor part_, part_gradient_;  // sharded: in weight_ and gradient_, or of their own
  Tensor scattering_;
  Tensor travelling_;                           // a sum that came, without gradients from here
  std::map<std::pair<int, int>, Stash> stash_;  // by micro-batch and slice
  absl::optional<int64_t> norm_;                // of the next step
  int64_t library_ns_ = 0;                      // counts passes, a nanosecond each
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_FAKE_MODULE_H_
