#include "models/checkpoint/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

std::string FileOf(absl::string_view header, absl::string_view data) {
  std::string contents(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(contents.data(), &length, 8);
  return absl::StrCat(contents, header, data);
}

Safetensors Sample() {
  Safetensors file;
  file.metadata = {{"step", "300"}, {"quote", "a \"b\"\nc"}};
  file.tensors["fc/w"] = {{2, 3}, std::vector<float>{1, -0.0f, 3.5f, 4, 5, 6}};
  file.tensors["ids"] = {{3}, std::vector<int32_t>{-1, 0, 2147483647}};
  file.tensors["step"] = {{}, std::vector<int64_t>{std::numeric_limits<int64_t>::min()}};
  file.tensors["scales"] = {{2, 1}, std::vector<uint16_t>{0x3FC0, 0xC000}};
  file.tensors["none"] = {{0, 7}, std::vector<float>()};
  return file;
}

TEST(SafetensorsTest, ReadsWhatItWrote) {
  const std::string contents = SerializeSafetensors(Sample());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Safetensors again, ParseSafetensors(contents, "f"));
  EXPECT_EQ(again.metadata, Sample().metadata);
  ASSERT_EQ(again.tensors.size(), Sample().tensors.size());
  for (const auto& [name, tensor] : Sample().tensors) {
    EXPECT_EQ(again.tensors.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(again.tensors.at(name).values, tensor.values) << name;
  }
  EXPECT_TRUE(std::signbit(std::get<0>(again.tensors.at("fc/w").values)[1]));
}

TEST(SafetensorsTest, KeepsTheBitsOfEveryNumber) {
  const std::vector<uint32_t> bits = {0x7FC00001, 0xFFC12345, 0x7F800000, 0x00000001, 0x80000000};
  std::vector<float> values(bits.size());
  std::memcpy(values.data(), bits.data(), 4 * bits.size());
  Safetensors file;
  file.tensors["x"] = {{5}, values};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Safetensors again,
                               ParseSafetensors(SerializeSafetensors(file), "f"));
  const auto& read = std::get<std::vector<float>>(again.tensors.at("x").values);
  EXPECT_EQ(std::memcmp(read.data(), bits.data(), 4 * bits.size()), 0);
}

// The bytes of the format, by hand.
TEST(SafetensorsTest, ReadsAFileOfAnotherWriter) {
  const std::string contents =
      FileOf(R"({"__metadata__":{"format":"pt"},)"
             R"("b":{"dtype":"I32","shape":[1],"data_offsets":[8,12]},)"
             R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}   )",
             std::string("\0\0\x80\x3f\0\0\0\xc0\x05\0\0\0", 12));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Safetensors file, ParseSafetensors(contents, "f"));
  EXPECT_EQ(file.metadata.at("format"), "pt");
  EXPECT_EQ(file.tensors.at("a").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file.tensors.at("a").values, StoredTensor::Values(std::vector<float>{1, -2}));
  EXPECT_EQ(file.tensors.at("b").values, StoredTensor::Values(std::vector<int32_t>{5}));
}

// Length, offset and alignment as the format's own reader wants them.
TEST(SafetensorsTest, WritesAlignedArraysWithoutGaps) {
  const std::string contents = SerializeSafetensors(Sample());
  uint64_t length = 0;
  std::memcpy(&length, contents.data(), 8);
  EXPECT_EQ(length % 8, 0);
  EXPECT_EQ(contents[8], '{');
  EXPECT_EQ(contents.size(), 8 + length + 6 * 4 + 3 * 4 + 2 * 2 + 8);
  int64_t step = 0;  // the only array of 8-byte numbers comes first
  std::memcpy(&step, contents.data() + 8 + length, 8);
  EXPECT_EQ(step, std::numeric_limits<int64_t>::min());
}

TEST(SafetensorsTest, EveryCutIsRefused) {
  const std::string contents = SerializeSafetensors(Sample());
  for (size_t size = 0; size < contents.size(); ++size) {
    EXPECT_THAT(ParseSafetensors(contents.substr(0, size), "cut"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cut: ")))
        << size;
  }
}

struct Bad {
  std::string contents, message;
};

TEST(SafetensorsTest, SaysWhatIsWrong) {
  const std::string eight(8, '\0');
  const std::vector<Bad> bad = {
      {"abc", "3 bytes; a safetensors file begins with 8 bytes of header length"},
      {FileOf("{}", "").substr(0, 9), "a header of 2 bytes; 1 follow"},
      {std::string(8, '\xff') + "{}", "a header of 18446744073709551615 bytes; 2 follow"},
      {FileOf("{", ""), "header:1:2: not JSON"},
      {FileOf("[]", ""), "the header is not a JSON object"},
      {FileOf("{}", "x"), "1 bytes of data; the header's tensors have 0"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
              R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              eight),
       "header: \"a\" comes twice in one object"},
      {FileOf(R"({"a":7})", ""), "tensor \"a\": its entry is not a JSON object"},
      {FileOf(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", eight), "no string \"dtype\""},
      {FileOf(R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", eight),
       "tensor \"a\": dtype \"F16\"; F32, I32, I64 and BF16 can be read"},
      {FileOf(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", eight), "no array \"shape\""},
      {FileOf(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", eight),
       "\"shape\" holds what is not a size"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", eight),
       "\"shape\" holds what is not a size"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", eight),
       "data_offsets [0]; the file has 8 bytes of data"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}})", eight),
       "data_offsets [0,16]; the file has 8 bytes of data"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", eight),
       "data_offsets [8,0]"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", eight),
       "8 bytes of data; its shape is [3] of F32"},
      {FileOf(R"({"a":{"dtype":"I64","shape":[2],"data_offsets":[0,8]}})", eight),
       "8 bytes of data; its shape is [2] of I64"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""),
       "0 bytes of data; its shape is [4294967296,4294967296] of F32"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})",
              eight.substr(0, 4)),
       "its shape is [4611686018427387905]"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
              eight),
       "tensor \"b\": data at byte 2; overlaps the data before it, which ends at byte 4"},
      {FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight),
       "tensor \"a\": data at byte 4; leaves a gap behind the data, which ends at byte 0"},
      {FileOf(R"({"__metadata__":{"step":3}})", ""), "metadata \"step\" is no string"},
      {FileOf(R"({"__metadata__":[]})", ""), "__metadata__ is not a JSON object"},
  };
  for (const Bad& b : bad) {
    EXPECT_THAT(ParseSafetensors(b.contents, "x.safetensors"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(b.message)));
    EXPECT_THAT(ParseSafetensors(b.contents, "x.safetensors"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("x.safetensors: ")));
  }
}

TEST(SafetensorsTest, FilesRoundTrip) {
  const std::string path = JoinPath(testing::TempDir(), "a.safetensors");
  ASSERT_THAT(WriteSafetensors(path, Sample()), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Safetensors again, ReadSafetensors(path));
  EXPECT_EQ(SerializeSafetensors(again), SerializeSafetensors(Sample()));
  EXPECT_THAT(ReadSafetensors(path + ".no"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path + ".no")));
}

}  // namespace
}  // namespace pipelab
