// A trained network's matrices in 4 bits: those that its layers multiply rows by, but the loss's.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ModelInputs inputs,
//                            CalibrationInputs(*trained, MakeCpuBackend(&arena), data, 64));
//   PIPELAB_ASSIGN_OR_RETURN(QuantizedMatrices matrices,
//                            QuantizeWeights(inputs, options, Quantizer::kGptq, *trained));
//   PIPELAB_RETURN_IF_ERROR(TakeInt4Network(NetworkOf(*trained, matrices), trained));
//
// Embeddings and the product in front of the loss stay as they are, as GPTQ leaves them.
#ifndef PIPELAB_MODELS_LAYERS_QUANTIZE_QUANTIZE_MODEL_H_
#define PIPELAB_MODELS_LAYERS_QUANTIZE_QUANTIZE_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "models/data/batch_source.h"
#include "models/layers/quantize/quantizer.h"
#include "models/layers/serial_trainer.h"

namespace pipelab {

using ModelInputs = std::map<std::string, InputSquares>;  // by the matrix's name

// What goes into each matrix on the first `samples` samples of the data's step 0, by a copy of the
// trained network on `backend`.
absl::StatusOr<ModelInputs> CalibrationInputs(const SerialTrainer& trained,
                                              std::unique_ptr<Backend> backend,
                                              const BatchSource& data, int64_t samples);

enum class Quantizer { kNearest, kGptq };

absl::StatusOr<QuantizedMatrices> QuantizeWeights(const ModelInputs& inputs,
                                                  const QuantizeOptions& options,
                                                  Quantizer quantizer,
                                                  const SerialTrainer& trained);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_QUANTIZE_QUANTIZE_MODEL_H_
