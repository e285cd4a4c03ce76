#include "models/data/byte_reader.h"

#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status FileByteReader::Error(int64_t offset, absl::string_view fault) const {
  return absl::DataLossError(absl::StrFormat("%s: byte %d: %s", file_, start_ + offset, fault));
}

absl::StatusOr<uint32_t> FileByteReader::Number(int64_t offset, int bytes) const {
  if (offset < 0 || offset > size() - bytes) {
    return Error(offset, absl::StrFormat("a number of %d bytes; this part ends at byte %d", bytes,
                                         start_ + size()));
  }
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    const int place = order_ == ByteOrder::kBig ? i : bytes - 1 - i;
    value = value << 8 | static_cast<uint8_t>(bytes_[offset + place]);
  }
  return value;
}

absl::StatusOr<uint8_t> FileByteReader::U8(int64_t offset) const {
  PIPELAB_ASSIGN_OR_RETURN(const uint32_t value, Number(offset, 1));
  return static_cast<uint8_t>(value);
}

absl::StatusOr<uint16_t> FileByteReader::U16(int64_t offset) const {
  PIPELAB_ASSIGN_OR_RETURN(const uint32_t value, Number(offset, 2));
  return static_cast<uint16_t>(value);
}

absl::StatusOr<uint32_t> FileByteReader::U32(int64_t offset) const { return Number(offset, 4); }

absl::StatusOr<FileByteReader> FileByteReader::Slice(int64_t offset, int64_t length,
                                                     absl::string_view what) const {
  if (offset < 0 || length < 0 || offset > size() || length > size() - offset) {
    return Error(offset, absl::StrFormat("%s of %d bytes; this part ends at byte %d", what, length,
                                         start_ + size()));
  }
  return FileByteReader(bytes_.substr(offset, length), file_, order_, start_ + offset);
}

absl::StatusOr<FileByteReader> FileByteReader::From(int64_t offset, absl::string_view what) const {
  return Slice(offset, offset < 0 || offset > size() ? 0 : size() - offset, what);
}

}  // namespace pipelab
