#include "models/data/data_file.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/emoji_test_writer.h"
#include "models/data/image_files.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// A graph that reads these fields, and nothing else of one.
ModelGraph Reads(std::vector<DataField> fields) {
  ModelGraph graph;
  graph.layers.emplace_back();
  graph.layers[0].name = "reader";
  graph.layers[0].data = std::move(fields);
  return graph;
}

const DataField kNumber = {kTargets, FieldType::kFloat, {1}};

std::string WriteTemporary(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  EXPECT_THAT(WriteFileAtomically(path, text), IsOk());
  return path;
}

absl::StatusOr<DataFile> Open(const std::string& path, const ModelGraph& graph) {
  DataFileOptions options;
  options.batch_samples = 4;
  return OpenDataFile("--data", path, graph, options);
}

std::string ErrorOf(const std::string& path, const ModelGraph& graph) {
  return std::string(Open(path, graph).status().message());
}

std::string TwentyRows() {
  std::string text = "a,b,y\n";
  for (int r = 0; r < 20; ++r) absl::StrAppend(&text, r, ",", r * r, ",", r % 2, "\n");
  return text;
}

TEST(DataFile, ATableIsWhatTheNetworkReads) {
  const std::string path = WriteTemporary("table.csv", TwentyRows());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DataFile numbers,
                               Open(path, Reads({{"features", FieldType::kFloat, {2}}, kNumber})));
  EXPECT_EQ(numbers.train->Field(kTargets).type, FieldType::kFloat);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DataFile classes,
                               Open(path, Reads({{"features", FieldType::kFloat, {2}},
                                                 {kTargets, FieldType::kId, {1}, 2}})));
  EXPECT_EQ(classes.train->Field(kTargets).limit, 2);
  EXPECT_THAT(ErrorOf(path, Reads({{"features", FieldType::kFloat, {3}}, kNumber})),
              EndsWith("table.csv: layer \"reader\" reads \"features\" as numbers [3]; the data "
                       "has numbers [2]"));
  EXPECT_THAT(ErrorOf(path, Reads({{kTokens, FieldType::kId, {8}, 96}})),
              EndsWith("table.csv: a table gives \"features\"; the network reads \"tokens\""));
}

TEST(DataFile, ATextIsTokens) {
  const std::string path =
      WriteTemporary("text.txt", std::string(500, 'a') + std::string(500, 'b'));
  const auto reads = [](int64_t tokens, int64_t words) {
    return Reads(
        {{kTokens, FieldType::kId, {tokens}, words}, {kTargets, FieldType::kId, {tokens}, words}});
  };
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DataFile text, Open(path, reads(16, 96)));
  EXPECT_EQ(text.train->Field(kTokens).limit, 2);
  EXPECT_THAT(ErrorOf(path, reads(16, 1)),
              EndsWith("reads \"tokens\" as ids below 1 [16]; the data has ids below 2 [16]"));
  EXPECT_THAT(ErrorOf(path, reads(200, 96)), HasSubstr("context of 200 tokens: must be from 1"));
  EXPECT_THAT(ErrorOf("/nowhere/x.txt", reads(16, 96)),
              testing::StartsWith("--data=/nowhere/x.txt: "));
}

std::string PictureFolder(const std::string& name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  for (int c = 0; c < 2; ++c) {
    const std::string of_class = absl::StrCat(folder, "/class", c);
    EXPECT_THAT(MakeDirectories(of_class), IsOk());
    for (int i = 0; i < 6; ++i) {
      const auto shade = static_cast<uint8_t>(c == 0 ? 10 + i : 200 + i);
      EXPECT_THAT(WriteFileAtomically(absl::StrCat(of_class, "/", i, ".png"),
                                      PlainPng(shade, shade, 0, 255, 8, 8)),
                  IsOk());
    }
  }
  return folder;
}

TEST(ImageFolder, ClassesAreFolders) {
  const std::string folder = PictureFolder("pictures");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto images, ReadImageFolder(folder, {4, 3}));
  EXPECT_EQ(images->size(), 12);
  EXPECT_EQ(images->classes, 2);
  EXPECT_THAT(images->labels, ElementsAre(0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(images->pixels[0], 10);
  EXPECT_EQ(images->pixels[2], 0);
  EXPECT_EQ(images->pixels[6 * images->image_bytes()], 200);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto grey, ReadImageFolder(folder, {4, 1}));
  EXPECT_EQ(grey->pixels[0], 20 / 3);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DataFile data,
                               Open(folder, Reads({{kImage, FieldType::kFloat, {4, 4, 3}},
                                                   {kTargets, FieldType::kId, {1}, 2}})));
  EXPECT_EQ(data.train->Field(kTargets).limit, 2);
  EXPECT_THAT(ErrorOf(folder, Reads({{kImage, FieldType::kFloat, {4, 6, 3}}})),
              HasSubstr("pictures become squares of 1 or 3 channels; the network reads numbers "
                        "[4, 6, 3]"));
}

TEST(ImageFolder, ErrorsNameTheFile) {
  const std::string folder = PictureFolder("damaged");
  ASSERT_THAT(WriteFileAtomically(absl::StrCat(folder, "/class1/9.png"), "no picture"), IsOk());
  EXPECT_THAT(std::string(ReadImageFolder(folder, {}).status().message()),
              HasSubstr("/class1/9.png: damaged PNG"));
  ASSERT_THAT(WriteFileAtomically(absl::StrCat(folder, "/class0/notes.txt"), "x"), IsOk());
  EXPECT_THAT(std::string(ReadImageFolder(folder, {}).status().message()),
              EndsWith("/class0/notes.txt: must be a PNG file"));
  ASSERT_THAT(WriteFileAtomically(absl::StrCat(folder, "/a.png"), "x"), IsOk());
  EXPECT_THAT(std::string(ReadImageFolder(folder, {}).status().message()),
              EndsWith("/a.png: must be a folder with the pictures of one class"));
}

TEST(DataFile, AFolderOfIdxFiles) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/idx");
  ASSERT_THAT(MakeDirectories(folder), IsOk());
  const std::string head("\0\0\x08\x03\0\0\0\x0c\0\0\0\x02\0\0\0\x02", 16);
  const std::string labels("\0\0\x08\x01\0\0\0\x0c", 8);
  WriteTemporary("idx/train-images-idx3-ubyte", head + std::string(48, 'x'));
  WriteTemporary("idx/train-labels-idx1-ubyte", labels + std::string(11, '\0') + '\x03');
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DataFile data,
                               Open(folder, Reads({{kImage, FieldType::kFloat, {2, 2, 1}},
                                                   {kTargets, FieldType::kId, {1}, 10}})));
  EXPECT_EQ(data.train->Field(kTargets).limit, 4);
}

}  // namespace
}  // namespace pipelab
