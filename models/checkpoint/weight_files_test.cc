#include "models/checkpoint/weight_files.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "models/checkpoint/safetensors.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

std::string FolderOf(const char* name) {
  const std::string folder = JoinPath(testing::TempDir(), name);
  EXPECT_THAT(MakeDirectories(folder), IsOk());
  return folder;
}

std::string SafetensorsFile(absl::string_view header, absl::string_view data) {
  std::string contents(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(contents.data(), &length, 8);
  return absl::StrCat(contents, header, data);
}

void WriteShard(const std::string& path, const std::string& tensor, float number) {
  Safetensors file;
  file.tensors[tensor] = {{1}, std::vector<float>{number}};
  ASSERT_THAT(WriteSafetensors(path, file), IsOk());
}

// Every half is the float of the same sign, exponent and fraction, by the standard's formula.
TEST(WeightFiles, ConvertsEveryHalfAndBFloat16) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float half = FloatOfHalf(static_cast<uint16_t>(bits));
    EXPECT_EQ(std::signbit(half), bits >> 15 == 1);
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(half), fraction != 0);
      EXPECT_FALSE(std::isfinite(half));
    } else {
      const double size = exponent == 0 ? fraction * std::pow(2.0, -24)
                                        : (1 + fraction / 1024.0) * std::pow(2.0, exponent - 15);
      EXPECT_EQ(std::abs(half), size) << bits;
    }
    const float wide = FloatOfBFloat16(static_cast<uint16_t>(bits));
    uint32_t back = 0;
    std::memcpy(&back, &wide, 4);
    EXPECT_EQ(back, static_cast<uint32_t>(bits) << 16);
  }
  for (int bits = 0; bits < 256; ++bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float number = FloatOfE4M3(static_cast<uint8_t>(bits));
    EXPECT_EQ(std::signbit(number), bits >> 7 == 1);
    if ((bits & 127) == 127) {
      EXPECT_TRUE(std::isnan(number));
      continue;
    }
    const double size = exponent == 0 ? fraction * std::pow(2.0, -9)
                                      : (1 + fraction / 8.0) * std::pow(2.0, exponent - 7);
    EXPECT_EQ(std::abs(number), size) << bits;
  }
  EXPECT_EQ(FloatOfE4M3(0x7E), 448);
  EXPECT_EQ(FloatOfHalf(0x3C00), 1);
  EXPECT_EQ(FloatOfHalf(0xC500), -5);
  EXPECT_EQ(FloatOfHalf(0x7BFF), 65504);
  EXPECT_EQ(FloatOfBFloat16(0xC0A0), -5);
}

TEST(WeightFiles, ReadsNarrowNumbersFromAFile) {
  const std::string path = JoinPath(FolderOf("narrow"), "a.safetensors");
  ASSERT_THAT(
      WriteFileAtomically(
          path, SafetensorsFile(R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
                                R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]},)"
                                R"("mask":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}})",
                                std::string("\x00\x3c\x00\xc5\x80\x3f\xa0\xc0\x01\x00\x01", 11))),
      IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const WeightFiles files, WeightFiles::Open(path));
  EXPECT_EQ(files.tensors().at("b").shape, (std::vector<int64_t>{1, 2}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> half, files.Read("h"));
  EXPECT_EQ(half, (std::vector<float>{1, -5}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> wide, files.Read("b"));
  EXPECT_EQ(wide, (std::vector<float>{1, -5}));
  EXPECT_THAT(
      files.Read("mask"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("tensor \"mask\": numbers of type BOOL; F32, F16, BF16 and F8_E4M3")));
  EXPECT_THAT(files.Read("none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"none\"")));
}

TEST(WeightFiles, ReadsMoreThanOnePartOfATensor) {
  const std::string path = JoinPath(FolderOf("long"), "a.safetensors");
  constexpr int64_t kNumbers = (3 << 19) + 7;  // of 2 bytes: three parts and some
  std::string data(2 * kNumbers, '\0');
  for (int64_t i = 0; i < kNumbers; ++i) {
    const auto bits = static_cast<uint16_t>(i % 30000);
    std::memcpy(data.data() + 2 * i, &bits, 2);
  }
  ASSERT_THAT(
      WriteFileAtomically(
          path, SafetensorsFile(absl::StrCat(R"({"b":{"dtype":"BF16","shape":[)", kNumbers,
                                             R"(],"data_offsets":[0,)", 2 * kNumbers, "]}}"),
                                data)),
      IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const WeightFiles files, WeightFiles::Open(path));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> all, files.Read("b"));
  ASSERT_EQ(all.size(), kNumbers);
  for (int64_t i = 0; i < kNumbers; ++i) {
    ASSERT_EQ(all[i], FloatOfBFloat16(static_cast<uint16_t>(i % 30000))) << i;
  }
}

TEST(WeightFiles, FindsTensorsInShards) {
  const std::string folder = FolderOf("shards");
  WriteShard(JoinPath(folder, "model-00001-of-00002.safetensors"), "first", 1);
  WriteShard(JoinPath(folder, "model-00002-of-00002.safetensors"), "second", 2);
  const std::string index = JoinPath(folder, "model.safetensors.index.json");
  const auto write = [&](const char* text) {
    ASSERT_THAT(WriteFileAtomically(index, text), IsOk());
  };
  write(R"({"metadata": {"total_size": 8}, "weight_map": {
      "first": "model-00001-of-00002.safetensors", "second": "model-00002-of-00002.safetensors"}})");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const WeightFiles files, WeightFiles::Open(folder));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> second, files.Read("second"));
  EXPECT_EQ(second, std::vector<float>{2});

  write(R"({"weight_map": {"frist": "model-00001-of-00002.safetensors"}})");
  EXPECT_THAT(WeightFiles::Open(folder),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("weight_map.frist: model-00001-of-00002.safetensors has no such "
                                 "tensor; did you mean first?")));
  write(R"({"weight_map": {"first": "model-00003.safetensors"}})");
  EXPECT_THAT(WeightFiles::Open(folder), StatusIs(absl::StatusCode::kNotFound,
                                                  HasSubstr("model-00003.safetensors: cannot be")));
  write(R"({"weight_map": {"first": "../model.safetensors"}})");
  EXPECT_THAT(WeightFiles::Open(folder),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("weight_map.first: \"../model.safetensors\": must be a "
                                 "safetensors file of the same folder")));
  write(R"({"weight_map": {"first": 3}})");
  EXPECT_THAT(WeightFiles::Open(folder),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("weight_map.first: 3: must")));
  write(R"({})");
  EXPECT_THAT(WeightFiles::Open(folder),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("weight_map: missing")));
}

TEST(WeightFiles, SaysWhatIsWrong) {
  const std::string folder = FolderOf("wrong"), file = JoinPath(folder, "model.safetensors");
  EXPECT_THAT(WeightFiles::Open(folder),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("has neither model.safetensors nor model.safetensors.index")));
  EXPECT_THAT(WeightFiles::Open(file),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no such file or folder")));
  WriteShard(file, "w", 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(file));
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_THAT(WriteFileAtomically(file, whole.substr(0, size)), IsOk());
    EXPECT_THAT(WeightFiles::Open(folder),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("model.safetensors: ")))
        << size;
  }
  // Cut after it was opened.
  ASSERT_THAT(WriteFileAtomically(file, whole), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const WeightFiles files, WeightFiles::Open(folder));
  ASSERT_THAT(WriteFileAtomically(file, whole.substr(0, whole.size() - 1)), IsOk());
  EXPECT_THAT(files.Read("w"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends before its last tensor")));
}

}  // namespace
}  // namespace pipelab
