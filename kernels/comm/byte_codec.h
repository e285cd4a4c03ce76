// Numbers and texts as bytes, between processes of one run (the same program on machines of one
// kind, so numbers go as they lie in memory).
//
//   std::string bytes;
//   ByteWriter(&bytes).Int(7).Text("1F3");
//   ByteReader in(bytes);
//   const int64_t n = in.Int();  const std::string s = in.Text();
//   if (!in.ok()) ...     // there was less than was read; what was read is 0 or ""
#ifndef PIPELAB_KERNELS_COMM_BYTE_CODEC_H_
#define PIPELAB_KERNELS_COMM_BYTE_CODEC_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

class ByteWriter {
 public:
  explicit ByteWriter(std::string* out) : out_(out) {}
  ByteWriter& Int(int64_t value) { return Raw(&value, sizeof(value)); }
  ByteWriter& Double(double value) { return Raw(&value, sizeof(value)); }
  ByteWriter& Text(absl::string_view text) {
    Int(static_cast<int64_t>(text.size()));
    return Raw(text.data(), text.size());
  }
  ByteWriter& Raw(const void* data, size_t bytes) {
    out_->append(static_cast<const char*>(data), bytes);
    return *this;
  }

 private:
  std::string* const out_;
};

class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : rest_(bytes) {}
  int64_t Int() {
    int64_t value = 0;
    Raw(&value, sizeof(value));
    return value;
  }
  double Double() {
    double value = 0;
    Raw(&value, sizeof(value));
    return value;
  }
  std::string Text() {
    const int64_t size = Int();
    if (size < 0 || static_cast<size_t>(size) > rest_.size()) {
      ok_ = false;
      return "";
    }
    std::string text(rest_.substr(0, static_cast<size_t>(size)));
    rest_.remove_prefix(static_cast<size_t>(size));
    return text;
  }
  void Raw(void* data, size_t bytes) {
    if (bytes > rest_.size()) {
      ok_ = false;
      return;
    }
    if (bytes == 0) return;  // `data` may be null
    std::memcpy(data, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }
  size_t left() const { return rest_.size(); }
  bool ok() const { return ok_; }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_BYTE_CODEC_H_
