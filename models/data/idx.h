// The IDX format of the MNIST family: an array of bytes with its dimensions.
//
//   PIPELAB_ASSIGN_OR_RETURN(IdxArray images, ReadIdx("train-images-idx3-ubyte.gz"));
//   images.dimensions;            // {60000, 28, 28}
//
// Format: two zero bytes, the type (0x08: bytes, the only one read here), the number of dimensions,
// each dimension in 32 bits, big-endian, then the numbers, which must fill the file. gzip is undone
// first; offsets in errors count unpacked bytes.
#ifndef PIPELAB_MODELS_DATA_IDX_H_
#define PIPELAB_MODELS_DATA_IDX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct IdxArray {
  std::vector<int64_t> dimensions;  // the last varies fastest
  std::string bytes;
};

// One that unpacks to more than `limit` bytes is refused.
constexpr int64_t kIdxLimit = int64_t{1} << 28;
// `file` names it in errors.
absl::StatusOr<IdxArray> ParseIdx(absl::string_view contents, absl::string_view file,
                                  int64_t limit = kIdxLimit);
absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int64_t limit = kIdxLimit);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_IDX_H_
