// Tensors in one safetensors file or in several (shards), read one at a time: no more of a model is
// in memory than what its reader keeps.
//
//   PIPELAB_ASSIGN_OR_RETURN(WeightFiles files, WeightFiles::Open("Qwen2-0.5B"));
//   files.tensors().at("model.norm.weight").shape;
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<float> all, files.Read("model.norm.weight"));
//
// Numbers of types F32, F16, BF16 and F8_E4M3, as float: every one of them is a float exactly.
//
// Errors: DataLoss for a damaged file (safetensors_header.h) and for an index that is not true,
// NotFound, InvalidArgument for a type that cannot be read; one line with the file.
#ifndef PIPELAB_MODELS_CHECKPOINT_WEIGHT_FILES_H_
#define PIPELAB_MODELS_CHECKPOINT_WEIGHT_FILES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/checkpoint/safetensors_header.h"

namespace pipelab {

// model.safetensors.index.json: in which file of the same folder each tensor is.
absl::StatusOr<std::map<std::string, std::string>> ParseShardIndex(absl::string_view text,
                                                                   absl::string_view file);

// A byte as a number: a sign, 4 bits of exponent and 3 of fraction, without infinities
// (Micikevicius et al., "FP8 Formats for Deep Learning", arXiv 2209.05433).
float FloatOfE4M3(uint8_t bits);
// Two bytes as a number.
float FloatOfHalf(uint16_t bits);
float FloatOfBFloat16(uint16_t bits);

class WeightFiles {
 public:
  struct Tensor {
    std::string file;  // path
    std::string type;
    std::vector<int64_t> shape;
    int64_t begin = 0, end = 0;  // bytes of the file
  };

  // A safetensors file; or a folder, with model.safetensors in it or
  // model.safetensors.index.json beside the files that it names. Reads headers alone.
  static absl::StatusOr<WeightFiles> Open(absl::string_view path);

  const std::string& path() const { return path_; }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }  // by name

  absl::StatusOr<std::vector<float>> Read(const std::string& name) const;

 private:
  // Takes the tensors of a file.
  absl::Status Add(const std::string& file);

  std::string path_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_CHECKPOINT_WEIGHT_FILES_H_
