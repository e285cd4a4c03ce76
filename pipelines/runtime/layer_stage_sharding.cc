// The part of LayerStage that deals with sharded parameters: layers get tensors that come and go.
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/layer_stage_checks.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status LayerStage::CheckGathered(const Action& a) const {
  if (parameters_.resident()) return absl::OkStatus();
  return Refuse(a, "comes while the stage's weights are not put together");
}

void LayerStage::PrepareGradients() {
  if (parameters_.PrepareGradients()) BindAgain();
}

absl::Status LayerStage::EndGather() {
  BindAgain();
  return absl::OkStatus();
}

absl::Status LayerStage::Release() {
  parameters_.Release();
  BindAgain();
  return absl::OkStatus();
}

absl::StatusOr<Tensor> LayerStage::SendHop(bool gradient) {
  PIPELAB_ASSIGN_OR_RETURN(Tensor tensor, parameters_.SendHop(gradient));
  if (gradient) BindAgain();
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return tensor;
}

absl::Status LayerStage::ReceiveHop(bool gradient, Tensor tensor) {
  parameters_.ReceiveHop(gradient, std::move(tensor));
  if (!gradient) BindAgain();
  return backend_->Finish();
}

absl::StatusOr<PartedTensor> LayerStage::Scatter(StageParameters* parameters) {
  PartedTensor gradients = parameters->BeginScatter();
  BindAgain();
  PIPELAB_RETURN_IF_ERROR(backend_->Finish());
  return gradients;
}

absl::Status LayerStage::EndScatter() {
  parameters_.EndScatter();
  return backend_->Finish();
}

}  // namespace pipelab
