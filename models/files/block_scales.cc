#include "models/files/block_scales.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<BlockScales> BlockScales::Of(const JsonObject& config) {
  BlockScales blocks;
  if (!config.HasObject("quantization_config")) return blocks;
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject how, config.Object("quantization_config"));
  PIPELAB_ASSIGN_OR_RETURN(const std::string method, how.String("quant_method"));
  if (method != "fp8") {
    return how.Error("quant_method", "\"", method,
                     "\": such weights cannot be read; must be fp8, or none");
  }
  constexpr char kSize[] = "weight_block_size";
  constexpr int64_t kMost = int64_t{1} << 31;  // sums with the sizes of a tensor fit
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* size, how.List(kSize));
  if (size->size() != 2 || !(*size)[0].is_number_integer() || !(*size)[1].is_number_integer() ||
      (*size)[0] < 1 || (*size)[1] < 1 || (*size)[0] > kMost || (*size)[1] > kMost) {
    return how.Error(kSize, size->dump(), ": must be rows and columns of a block, at most ", kMost,
                     " each, such as [128,128]");
  }
  blocks.rows_ = (*size)[0];
  blocks.columns_ = (*size)[1];
  return blocks;
}

bool BlockScales::Has(const WeightFiles& files, const std::string& tensor) {
  const auto it = files.tensors().find(tensor);
  return it != files.tensors().end() && it->second.type == "F8_E4M3";
}

absl::StatusOr<std::vector<float>> BlockScales::Read(const WeightFiles& files,
                                                     const std::string& name) const {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<float> values, files.Read(name));
  if (!Has(files, name)) return values;
  const WeightFiles::Tensor& tensor = files.tensors().at(name);
  const auto error = [&](const auto&... words) {
    return absl::InvalidArgumentError(
        absl::StrCat(tensor.file, ": tensor \"", name, "\" of 8-bit numbers ", words...));
  };
  const auto factors = files.tensors().find(NameFor(name));
  if (factors == files.tensors().end()) return error("has no factors \"", NameFor(name), "\"");
  if (tensor.shape.size() != 2) return error("is no matrix, and its factors are of blocks");
  const int64_t across = (tensor.shape[1] + columns_ - 1) / columns_;
  const std::vector<int64_t> needed = {(tensor.shape[0] + rows_ - 1) / rows_, across};
  if (factors->second.shape != needed) {
    return error("has factors of [", absl::StrJoin(factors->second.shape, ","), "]; blocks of ",
                 rows_, " x ", columns_, " take [", absl::StrJoin(needed, ","), "]");
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> scales, files.Read(NameFor(name)));
  for (int64_t i = 0; i < tensor.shape[0]; ++i) {
    for (int64_t j = 0; j < tensor.shape[1]; ++j) {
      values[i * tensor.shape[1] + j] *= scales[i / rows_ * across + j / columns_];
    }
  }
  return values;
}

}  // namespace pipelab
