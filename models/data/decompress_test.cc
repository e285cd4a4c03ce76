// Compressed data: each format whole, cut off, damaged, too large.
#include "models/data/decompress.h"

#include <lzma.h>
#include <zlib.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kLimit = 1 << 20;

std::string SampleText() {
  std::string text;
  for (int i = 0; i < 30000; ++i) text += std::to_string(i * 7919 % 10007) + " ";
  return text;
}

std::string Deflate(const std::string& text, int window_bits) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(&out[0]);
  stream.avail_out = out.size();
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Xz(const std::string& text) {
  std::string out(text.size() + 1000, '\0');
  size_t size = 0;
  lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                          reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                          reinterpret_cast<uint8_t*>(&out[0]), &size, out.size());
  out.resize(size);
  return out;
}

std::string RawLzma(const std::string& text) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, LZMA_PRESET_DEFAULT);
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string out(text.size() + 1000, '\0');
  size_t size = 0;
  lzma_raw_buffer_encode(filters, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                         text.size(), reinterpret_cast<uint8_t*>(&out[0]), &size, out.size());
  out.resize(size);
  return out;
}

class Formats : public testing::TestWithParam<int> {
 protected:
  std::string Pack(const std::string& text) const {
    switch (GetParam()) {
      case 0:
        return Deflate(text, 15);
      case 1:
        return Deflate(text, 15 + 16);
      case 2:
        return Xz(text);
      default:
        return RawLzma(text);
    }
  }
  absl::StatusOr<std::string> Unpack(absl::string_view bytes, int64_t limit) const {
    return GetParam() < 3 ? Decompress(bytes, limit, "f") : DecompressRawLzma(bytes, limit, "f");
  }
};

TEST_P(Formats, RoundTrip) {
  for (const std::string& text : {SampleText(), std::string("x"), std::string()}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string out, Unpack(Pack(text), kLimit));
    EXPECT_EQ(out, text);
  }
}

TEST_P(Formats, LimitIsExact) {
  const std::string text = SampleText(), packed = Pack(text);
  const int64_t size = static_cast<int64_t>(text.size());
  EXPECT_THAT(Unpack(packed, size), IsOk());
  EXPECT_THAT(Unpack(packed, size - 1), StatusIs(absl::StatusCode::kOutOfRange, StartsWith("f: ")));
}

TEST_P(Formats, EveryTruncationIsAnError) {
  const std::string packed = Pack("a text of some length, length, length");
  for (size_t n = 6; n < packed.size(); ++n) {  // shorter, the format cannot be told
    EXPECT_THAT(Unpack(packed.substr(0, n), kLimit),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends too early")))
        << n;
  }
}

TEST_P(Formats, MoreBehindTheEndIsAnError) {
  EXPECT_FALSE(Unpack(Pack("text") + "more", kLimit).ok());
}

INSTANTIATE_TEST_SUITE_P(All, Formats, testing::Range(0, 4));

TEST(Decompress, DamageIsCaught) {
  for (std::string packed :
       {Deflate(SampleText(), 15), Deflate(SampleText(), 31), Xz(SampleText())}) {
    packed[packed.size() / 2] ^= 0x10;
    EXPECT_THAT(Decompress(packed, kLimit, "f"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("at byte")));
  }
}

TEST(Decompress, OtherFormats) {
  EXPECT_EQ(*Decompress("X\nplain", kLimit, "f"), "X\nplain");
  EXPECT_EQ(*Decompress("", kLimit, "f"), "");
  EXPECT_THAT(Decompress("plain", 4, "f"),
              StatusIs(absl::StatusCode::kOutOfRange, StartsWith("f: ")));
  EXPECT_THAT(Decompress("BZh91AY", kLimit, "f"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("bzip2")));
}

}  // namespace
}  // namespace pipelab
