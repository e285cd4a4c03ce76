#include "models/layers/quantize/quantize_model.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "kernels/recording/recording_backend.h"
#include "kernels/tensor/host_values.h"
#include "models/graph/layer_spec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The matrices of layers without a loss, by their values.
absl::StatusOr<std::map<std::vector<float>, std::string>> NamesOfMatrices(
    const SerialTrainer& trained) {
  std::map<std::vector<float>, std::string> names;
  for (const LayerSpec& layer : trained.graph().layers) {
    if (layer.output_shape.empty()) continue;
    for (const ParameterSpec& p : layer.parameters) {
      if (p.shape.size() != 2) continue;
      PIPELAB_ASSIGN_OR_RETURN(std::vector<float> value, trained.ParameterValue(p.name));
      names.emplace(std::move(value), ValueName(p));
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<ModelInputs> CalibrationInputs(const SerialTrainer& trained,
                                              std::unique_ptr<Backend> backend,
                                              const BatchSource& data, int64_t samples) {
  PIPELAB_ASSIGN_OR_RETURN(const auto names, NamesOfMatrices(trained));
  RecordingBackend observed(std::move(backend));
  SerialOptions options;
  options.data = &data;
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<SerialTrainer> copy,
                           SerialTrainer::Create(trained.graph(), &observed, options));
  PIPELAB_RETURN_IF_ERROR(copy->SetState(trained.State()));
  ModelInputs inputs;
  std::map<const void*, InputSquares*> found;  // null: no matrix of ours
  observed.ObserveProducts([&](const Tensor& x_MK, const Tensor& w_KN) {
    const auto [it, is_new] = found.try_emplace(w_KN.data(), nullptr);
    if (is_new) {
      const auto name = names.find(HostValues(w_KN));
      if (name == names.end()) return;
      it->second = &inputs.emplace(name->second, InputSquares(w_KN.dim(0))).first->second;
    }
    if (it->second != nullptr) it->second->Add(HostValues(x_MK));
  });
  for (int64_t sample = 0; sample < samples; ++sample) {
    PIPELAB_RETURN_IF_ERROR(copy->Evaluate(data, /*step=*/0, sample, 1).status());
  }
  return inputs;
}

absl::StatusOr<QuantizedMatrices> QuantizeWeights(const ModelInputs& inputs,
                                                  const QuantizeOptions& options,
                                                  Quantizer quantizer,
                                                  const SerialTrainer& trained) {
  QuantizedMatrices matrices;
  for (const auto& [name, squares] : inputs) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> w_KN, trained.ParameterValue(name));
    const int64_t k = squares.k(), n = static_cast<int64_t>(w_KN.size()) / k;
    QuantizedMatrix& q = matrices[name];
    if (quantizer == Quantizer::kGptq) {
      PIPELAB_ASSIGN_OR_RETURN(q, Gptq(w_KN, squares, n, options));
    } else {
      q = RoundToNearest(w_KN, k, n, options);
    }
  }
  return matrices;
}

}  // namespace pipelab
