// Reads numbers and slices at any place of a file held in memory; nothing beyond its end is read.
//
//   const FileByteReader file(bytes, "x.mo", ByteOrder::kLittle);
//   PIPELAB_ASSIGN_OR_RETURN(uint32_t count, file.U32(8));
//   PIPELAB_ASSIGN_OR_RETURN(FileByteReader table, file.Slice(offset, 8 * count, "string table"));
//
// Offsets are bytes from the start of this part; errors name the file and the byte counted from the
// file's own start: "x.mo: byte 28: string table of 800 bytes; this part ends at byte 512".
#ifndef PIPELAB_MODELS_DATA_BYTE_READER_H_
#define PIPELAB_MODELS_DATA_BYTE_READER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

enum class ByteOrder : uint8_t { kBig, kLittle };

class FileByteReader {
 public:
  // `bytes` must outlive the reader and its parts.
  FileByteReader(absl::string_view bytes, absl::string_view file, ByteOrder order)
      : FileByteReader(bytes, file, order, 0) {}

  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  absl::string_view bytes() const { return bytes_; }
  const std::string& file() const { return file_; }

  absl::StatusOr<uint8_t> U8(int64_t offset) const;
  absl::StatusOr<uint16_t> U16(int64_t offset) const;
  absl::StatusOr<uint32_t> U32(int64_t offset) const;
  // `what` names the part in the error: "string table".
  absl::StatusOr<FileByteReader> Slice(int64_t offset, int64_t length,
                                       absl::string_view what) const;
  absl::StatusOr<FileByteReader> From(int64_t offset, absl::string_view what) const;

  // DataLoss: "FILE: byte N: FAULT".
  absl::Status Error(int64_t offset, absl::string_view fault) const;

 private:
  FileByteReader(absl::string_view bytes, absl::string_view file, ByteOrder order, int64_t start)
      : bytes_(bytes), file_(file), order_(order), start_(start) {}
  absl::StatusOr<uint32_t> Number(int64_t offset, int size) const;

  absl::string_view bytes_;
  std::string file_;
  ByteOrder order_;
  int64_t start_;  // of this part in the file
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_BYTE_READER_H_
