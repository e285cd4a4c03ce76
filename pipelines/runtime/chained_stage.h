// A stage that also waits for stages from which it takes nothing, as stages of a sequential
// pipeline do: edges behind those of the partition (WithChain, ir/schedule.h) carry tensors without
// elements.
//
//   ChainedStage chained(layer_stage.get(), backend, tokens);
//   setup.modules[replica][stage] = &chained;
#ifndef PIPELAB_PIPELINES_RUNTIME_CHAINED_STAGE_H_
#define PIPELAB_PIPELINES_RUNTIME_CHAINED_STAGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/backend.h"
#include "pipelines/runtime/stage_module.h"

namespace pipelab {

// The stage's own edges, and those behind them.
struct ChainEdges {
  int own_in = 0, own_out = 0, more_in = 0, more_out = 0;
  int64_t rows = 0;  // of this member's micro-batch
};

class ChainedStage final : public StageModule {
 public:
  // `stage` and `backend` must outlive it.
  ChainedStage(StageModule* stage, Backend* backend, ChainEdges edges)
      : stage_(*stage), backend_(backend), edges_(edges) {}

  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor> inputs,
                                              bool drop) override;
  absl::StatusOr<std::vector<Tensor>> Backward(const Action& a,
                                               std::vector<Tensor> output_gradients) override;
  TensorSpec InputSpec(int in_edge, int slice) const override;
  TensorSpec OutputSpec(int out_edge, int slice) const override;

  absl::Status Recompute(const Action& a) override { return stage_.Recompute(a); }
  absl::Status BackwardWeight(const Action& a) override { return stage_.BackwardWeight(a); }
  absl::StatusOr<std::vector<Tensor*>> Kept(const Action& a) override { return stage_.Kept(a); }
  absl::Status Step(const Action& a) override { return stage_.Step(a); }
  absl::StatusOr<Tensor> Gradients(absl::string_view parameter) override {
    return stage_.Gradients(parameter);
  }
  absl::StatusOr<PartedTensor> BeginGather() override { return stage_.BeginGather(); }
  SharedParameters* experts() override { return stage_.experts(); }
  absl::Status EndGather() override { return stage_.EndGather(); }
  absl::Status Release() override { return stage_.Release(); }
  TensorSpec HopSpec(bool gradient) const override { return stage_.HopSpec(gradient); }
  absl::StatusOr<Tensor> SendHop(bool gradient) override { return stage_.SendHop(gradient); }
  absl::Status ReceiveHop(bool gradient, Tensor tensor) override {
    return stage_.ReceiveHop(gradient, std::move(tensor));
  }
  absl::StatusOr<PartedTensor> BeginScatter() override { return stage_.BeginScatter(); }
  absl::Status EndScatter() override { return stage_.EndScatter(); }
  absl::StatusOr<Tensor> BeginNorm(const NormShare& share) override {
    return stage_.BeginNorm(share);
  }
  absl::Status EndNorm(const Tensor& squares) override { return stage_.EndNorm(squares); }
  int64_t library_ns() const override { return stage_.library_ns(); }

 private:
  absl::StatusOr<std::vector<Tensor>> WithTokens(absl::StatusOr<std::vector<Tensor>> made,
                                                 int tokens) const;

  StageModule& stage_;
  Backend* const backend_;
  const ChainEdges edges_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_CHAINED_STAGE_H_
