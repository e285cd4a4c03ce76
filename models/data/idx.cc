#include "models/data/idx.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "models/data/byte_reader.h"
#include "models/data/decompress.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kBytes = 0x08;
constexpr int kMostDimensions = 8;

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::string_view contents, absl::string_view file,
                                  int64_t limit) {
  PIPELAB_ASSIGN_OR_RETURN(std::string bytes, Decompress(contents, limit, file));
  const FileByteReader reader(bytes, file, ByteOrder::kBig);
  PIPELAB_ASSIGN_OR_RETURN(const uint32_t magic, reader.U32(0));
  const int type = static_cast<int>(magic >> 8 & 0xFF), count = static_cast<int>(magic & 0xFF);
  if (magic >> 16 != 0 || count < 1 || count > kMostDimensions) {
    return reader.Error(0, absl::StrFormat("magic number 0x%08x; an IDX file of bytes with n "
                                           "dimensions starts with 0x0000080n",
                                           magic));
  }
  if (type != kBytes) {
    return absl::UnimplementedError(absl::StrFormat(
        "%s: byte 2: numbers of type 0x%02x; only bytes (0x08) can be read", file, type));
  }
  IdxArray array;
  int64_t size = 1;
  for (int i = 0; i < count; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t dimension, reader.U32(4 + 4 * i));
    array.dimensions.push_back(dimension);
    // Stops before the product of the dimensions can pass 2^63.
    if (size > 0 && dimension > reader.size() / size) {
      return reader.Error(4 + 4 * i, absl::StrFormat("%d dimensions with at least %d x %d numbers; "
                                                     "the file has %d bytes",
                                                     count, size, dimension, reader.size()));
    }
    size *= dimension;
  }
  const int64_t start = 4 + 4 * count;
  if (reader.size() - start != size) {
    return reader.Error(start, absl::StrFormat("%d numbers follow; the dimensions say %d",
                                               reader.size() - start, size));
  }
  bytes.erase(0, start);
  array.bytes = std::move(bytes);
  return array;
}

absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int64_t limit) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path, limit));
  return ParseIdx(contents, path, limit);
}

}  // namespace pipelab
