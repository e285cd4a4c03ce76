// The header of a safetensors file (safetensors.h): which tensors there are, of which type, and
// where their bytes lie. Reads no tensor, so a file of any size can be asked.
//
//   PIPELAB_ASSIGN_OR_RETURN(SafetensorsHeader h,
//                            ParseSafetensorsHeader(text, bytes_behind, path));
//   h.tensors.at("fc/w").begin;     // of its bytes, counted from the header's end
//
// Errors: DataLoss, "FILE: tensor "fc/w": ...".
#ifndef PIPELAB_MODELS_CHECKPOINT_SAFETENSORS_HEADER_H_
#define PIPELAB_MODELS_CHECKPOINT_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

inline constexpr char kSafetensorsMetadata[] = "__metadata__";
inline constexpr int64_t kSafetensorsLengthBytes = 8;  // of the header's length, which is first

struct SafetensorsEntry {
  std::string type;            // one of the format: "BF16"
  std::vector<int64_t> shape;  // the last dimension varies fastest
  int64_t begin = 0, end = 0;  // bytes
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry> tensors;  // by name
  std::map<std::string, std::string> metadata;
};

// The header's length from the file's first bytes, where `behind` bytes follow these.
absl::StatusOr<int64_t> SafetensorsHeaderLength(absl::string_view first, int64_t behind,
                                                absl::string_view file);

// Every tensor has as many bytes as its shape says, and the tensors fill `data_bytes` without
// overlaps and gaps.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view text, int64_t data_bytes,
                                                         absl::string_view file);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_CHECKPOINT_SAFETENSORS_HEADER_H_
