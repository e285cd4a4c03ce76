#include "models/data/decompress.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace pipelab {
namespace {

// The libraries count input in 32 bits or want it whole; no data file of ours comes near.
constexpr size_t kInputLimit = size_t{1} << 31;
constexpr size_t kFirstPiece = 1 << 16;

absl::Status Damaged(absl::string_view what, absl::string_view format, absl::string_view fault,
                     uint64_t offset) {
  return absl::DataLossError(
      absl::StrFormat("%s: damaged %s data: %s at byte %d", what, format, fault, offset));
}

absl::Status TooLarge(absl::string_view what, int64_t limit) {
  return absl::OutOfRangeError(
      absl::StrFormat("%s: unpacks to more than the %d bytes allowed", what, limit));
}

// Room for the next piece of output: doubles, one byte above the limit at most, which tells
// "exactly the limit" from "more". A small file that claims to be huge costs no more than it holds.
void Grow(std::string& out, int64_t limit) {
  const size_t doubled = std::max(kFirstPiece, out.size() * 2);
  // Just below it, the last byte would cost a copy of all.
  out.resize(doubled < static_cast<size_t>(limit) ? doubled : static_cast<size_t>(limit) + 1);
}

absl::StatusOr<std::string> Inflate(absl::string_view bytes, int64_t limit, absl::string_view what,
                                    absl::string_view format) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 32) != Z_OK) {  // zlib or gzip, told by the header
    return absl::ResourceExhaustedError(absl::StrFormat("%s: no memory to unpack it", what));
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int code = Z_OK;
  while (code == Z_OK && static_cast<int64_t>(out.size()) <= limit) {
    const size_t done = out.size();
    Grow(out, limit);
    stream.next_out = reinterpret_cast<Bytef*>(&out[done]);
    stream.avail_out = static_cast<uInt>(out.size() - done);
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) code = Z_BUF_ERROR;
  }
  const uint64_t offset = bytes.size() - stream.avail_in;
  const std::string message = stream.msg == nullptr ? "bad data" : stream.msg;
  inflateEnd(&stream);
  if (static_cast<int64_t>(out.size()) > limit) return TooLarge(what, limit);
  if (code == Z_BUF_ERROR) return Damaged(what, format, "it ends too early,", offset);
  if (code != Z_STREAM_END) return Damaged(what, format, message, offset);
  if (offset != bytes.size()) return Damaged(what, format, "more data behind the end,", offset);
  return out;
}

// Runs a decoder that has been set up, and ends it.
absl::StatusOr<std::string> RunLzma(lzma_stream& stream, absl::string_view bytes, int64_t limit,
                                    absl::string_view what) {
  stream.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  std::string out;
  lzma_ret code = LZMA_OK;
  while (code == LZMA_OK && static_cast<int64_t>(out.size()) <= limit) {
    const size_t done = out.size();
    Grow(out, limit);
    stream.next_out = reinterpret_cast<uint8_t*>(&out[done]);
    stream.avail_out = out.size() - done;
    code = lzma_code(&stream, LZMA_FINISH);
    out.resize(out.size() - stream.avail_out);
    if (code == LZMA_OK && stream.avail_in == 0 && stream.avail_out > 0) code = LZMA_BUF_ERROR;
  }
  const uint64_t offset = bytes.size() - stream.avail_in;
  lzma_end(&stream);
  if (static_cast<int64_t>(out.size()) > limit) return TooLarge(what, limit);
  if (code == LZMA_BUF_ERROR) return Damaged(what, "xz", "it ends too early,", offset);
  if (code == LZMA_MEMLIMIT_ERROR || code == LZMA_MEM_ERROR) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: unpacking takes too much memory", what));
  }
  if (code != LZMA_STREAM_END) return Damaged(what, "xz", "bad data", offset);
  if (offset != bytes.size()) return Damaged(what, "xz", "more data behind the end,", offset);
  return out;
}

absl::Status CheckInput(absl::string_view bytes, absl::string_view what) {
  if (bytes.size() < kInputLimit) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrFormat("%s: %d bytes are too many to unpack in one piece", what, bytes.size()));
}

}  // namespace

absl::StatusOr<std::string> Decompress(absl::string_view bytes, int64_t limit,
                                       absl::string_view what) {
  if (absl::Status status = CheckInput(bytes, what); !status.ok()) return status;
  if (absl::StartsWith(bytes, "\x1f\x8b")) return Inflate(bytes, limit, what, "gzip");
  // zlib: deflate in the low four bits, and the two bytes are a multiple of 31.
  if (bytes.size() >= 2 && (bytes[0] & 0x8f) == 0x08 &&
      (static_cast<uint8_t>(bytes[0]) * 256 + static_cast<uint8_t>(bytes[1])) % 31 == 0) {
    return Inflate(bytes, limit, what, "zlib");
  }
  if (absl::StartsWith(bytes, absl::string_view("\xfd"
                                                "7zXZ\0",
                                                6))) {
    constexpr uint64_t kMemory = uint64_t{256} << 20;  // xz -9 needs 65 MiB
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, kMemory, 0) != LZMA_OK) {
      return absl::ResourceExhaustedError(absl::StrFormat("%s: no memory to unpack it", what));
    }
    return RunLzma(stream, bytes, limit, what);
  }
  if (absl::StartsWith(bytes, "BZh")) {
    return absl::UnimplementedError(
        absl::StrFormat("%s: bzip2 compression is not supported; gzip, zlib and xz are", what));
  }
  if (static_cast<int64_t>(bytes.size()) > limit) return TooLarge(what, limit);
  return std::string(bytes);
}

absl::StatusOr<std::string> DecompressRawLzma(absl::string_view bytes, int64_t limit,
                                              absl::string_view what) {
  if (absl::Status status = CheckInput(bytes, what); !status.ok()) return status;
  lzma_options_lzma options;
  lzma_lzma_preset(&options, LZMA_PRESET_DEFAULT);
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_raw_decoder(&stream, filters) != LZMA_OK) {
    return absl::ResourceExhaustedError(absl::StrFormat("%s: no memory to unpack it", what));
  }
  return RunLzma(stream, bytes, limit, what);
}

}  // namespace pipelab
