#include "pipelines/runtime/chained_stage.h"

#include <utility>

namespace pipelab {

absl::StatusOr<std::vector<Tensor>> ChainedStage::WithTokens(
    absl::StatusOr<std::vector<Tensor>> made, int tokens) const {
  if (!made.ok()) return made;
  for (int i = 0; i < tokens; ++i) made->push_back(backend_->AllocateFloats({edges_.rows, 0}));
  return made;
}

absl::StatusOr<std::vector<Tensor>> ChainedStage::Forward(const Action& a,
                                                          std::vector<Tensor> inputs, bool drop) {
  inputs.resize(edges_.own_in);
  return WithTokens(stage_.Forward(a, std::move(inputs), drop), edges_.more_out);
}

absl::StatusOr<std::vector<Tensor>> ChainedStage::Backward(const Action& a,
                                                           std::vector<Tensor> output_gradients) {
  output_gradients.resize(edges_.own_out);
  return WithTokens(stage_.Backward(a, std::move(output_gradients)), edges_.more_in);
}

TensorSpec ChainedStage::InputSpec(int in_edge, int slice) const {
  if (in_edge < edges_.own_in) return stage_.InputSpec(in_edge, slice);
  return {DataType::kFloat32, {edges_.rows, 0}};
}

TensorSpec ChainedStage::OutputSpec(int out_edge, int slice) const {
  if (out_edge < edges_.own_out) return stage_.OutputSpec(out_edge, slice);
  return {DataType::kFloat32, {edges_.rows, 0}};
}

}  // namespace pipelab
