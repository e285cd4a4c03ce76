// Tensors of 8-bit numbers whose blocks have a factor each, as DeepSeek-V3's weights are published:
// beside "w.weight" of [out, in] there is "w.weight_scale_inv", a number for each block
// (DeepSeek-AI, arXiv 2412.19437, section 3.3).
//
//   PIPELAB_ASSIGN_OR_RETURN(BlockScales blocks, BlockScales::Of(config));   // a config.json
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<float> w, blocks.Read(files, "w.weight"));
//
// Errors: InvalidArgument naming the key, or the tensor.
#ifndef PIPELAB_MODELS_FILES_BLOCK_SCALES_H_
#define PIPELAB_MODELS_FILES_BLOCK_SCALES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/weight_files.h"
#include "tools/base/json_object.h"

namespace pipelab {

class BlockScales {
 public:
  // Reads "quantization_config", which must be "fp8" with blocks; blocks of 128 x 128 without it.
  static absl::StatusOr<BlockScales> Of(const JsonObject& config);

  // The name of the factors that a tensor of 8-bit numbers has beside it.
  static std::string NameFor(const std::string& tensor) { return tensor + "_scale_inv"; }

  // Whether a tensor has 8-bit numbers, so that it needs factors.
  static bool Has(const WeightFiles& files, const std::string& tensor);

  // The tensor's numbers, times their factors where they have 8 bits.
  absl::StatusOr<std::vector<float>> Read(const WeightFiles& files, const std::string& name) const;

 private:
  int64_t rows_ = 128, columns_ = 128;  // of a block
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_BLOCK_SCALES_H_
