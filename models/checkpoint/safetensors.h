// Files of named arrays in the safetensors format (github.com/huggingface/safetensors), which
// PyTorch, JAX and NumPy read as well.
//
//   Safetensors file;
//   file.metadata["step"] = "300";
//   file.tensors["fc/w"] = {{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}};
//   PIPELAB_RETURN_IF_ERROR(WriteSafetensors("a.safetensors", file));
//   PIPELAB_ASSIGN_OR_RETURN(Safetensors again, ReadSafetensors("a.safetensors"));
//
// Format, little-endian: the header's length in 8 bytes; the header, JSON, {"NAME": {"dtype",
// "shape", "data_offsets": [begin, end)}, "__metadata__": {strings}}; the arrays' bytes, which fill
// the rest of the file without gaps. Values keep their bits, NaN included.
//
// Errors: DataLoss, "FILE: tensor "fc/w": 20 bytes at 0; its shape [2,3] of F32 needs 24", for
// everything that is wrong with a file; the file system's own otherwise.
#ifndef PIPELAB_MODELS_CHECKPOINT_SAFETENSORS_H_
#define PIPELAB_MODELS_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct StoredTensor {
  // dtypes F32, I32, I64 and BF16, whose bits they are; others are not read.
  using Values = std::variant<std::vector<float>, std::vector<int32_t>, std::vector<int64_t>,
                              std::vector<uint16_t>>;

  std::vector<int64_t> shape;  // the last dimension varies fastest
  Values values;               // as many as the shape says
};

struct Safetensors {
  std::map<std::string, StoredTensor> tensors;  // by name
  std::map<std::string, std::string> metadata;
};

// The same bytes for the same content. Shapes fit their values and no tensor is named
// "__metadata__" (CHECKed).
std::string SerializeSafetensors(const Safetensors& file);
// `file` names it in errors.
absl::StatusOr<Safetensors> ParseSafetensors(absl::string_view contents, absl::string_view file);

// A checksum of the numbers' bits, for metadata: damage that leaves a file readable shows.
std::string ChecksumOf(const std::map<std::string, StoredTensor>& tensors);

// The file appears whole or stays as it was.
absl::Status WriteSafetensors(absl::string_view path, const Safetensors& file);
absl::StatusOr<Safetensors> ReadSafetensors(absl::string_view path);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_CHECKPOINT_SAFETENSORS_H_
