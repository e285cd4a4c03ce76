#include "models/files/model_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/example_files.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

std::string ExampleNamed(absl::string_view name) {
  for (const EmbeddedText& file : ExampleFiles()) {
    if (file.name == name) return std::string(file.text);
  }
  ADD_FAILURE() << "no example " << name;
  return "";
}

TEST(ModelFile, FormatsAreToldApart) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph mine,
                               ParseModel(ExampleNamed("two_towers"), "a", "file"));
  EXPECT_EQ(mine.name, "two-towers");
  EXPECT_EQ(mine.layers.size(), 7u);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph profile,
                               ParseModel(ExampleNamed("pipedream.graph"), "a", "file"));
  EXPECT_EQ(profile.name, "file");
  EXPECT_EQ(profile.layers.size(), 7u);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph piper,
                               ParseModel(ExampleNamed("piper"), "a", "file"));
  EXPECT_EQ(piper.name, "file");
  EXPECT_EQ(piper.layers.size(), 5u);
  ModelFileOptions options;
  options.piper_unit = PiperTimeUnit::kMilliseconds;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph fast,
                               ParseModel(ExampleNamed("piper"), "a", "file", options));
  EXPECT_EQ(fast.layers[0].operations(1000, TokenSlice()).forward[0].time,
            piper.layers[0].operations(1, TokenSlice()).forward[0].time);
  EXPECT_THAT(ParseModel(ExampleNamed("placement"), "a.json", "file"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dnn-partitioning")));
}

TEST(ModelFile, NamesAndFiles) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph gpt, FindModel("--model", "gpt-6.6b"));
  EXPECT_GT(gpt.num_parameters(), 6e9);
  const std::string path = JoinPath(testing::TempDir(), "my.graph.txt");
  ASSERT_THAT(WriteFileAtomically(path, ExampleNamed("pipedream.graph")), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph profile, FindModel("--model", path));
  EXPECT_EQ(profile.name, "my");
}

TEST(ModelFile, ErrorsNameTheOptionAndTheFile) {
  EXPECT_THAT(FindModel("--model", "gpt"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--model=gpt: no such model, and no file, whose name would end "
                                 "in .json or .txt; did you mean gpt-")));
  EXPECT_THAT(FindModel("--net", "/nowhere/a.json"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--net=/nowhere/a.json: ")));
  const std::string path = JoinPath(testing::TempDir(), "bad.json");
  const auto message = [&](const std::string& text) {
    EXPECT_THAT(WriteFileAtomically(path, text), IsOk());
    const auto graph = FindModel("--model", path);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(graph.status().message());
  };
  EXPECT_THAT(message("layers"), HasSubstr(absl::StrCat("--model=", path, ":1:")));
  EXPECT_EQ(message(R"({"name": "m", "layers": [{"name": "a", "output": "1 B"}]})"),
            absl::StrCat("--model=", path,
                         ": layers[0].flops: missing, and so is \"time\": layer \"a\" has no "
                         "cost"));
  EXPECT_EQ(message(R"({"name": "m", "layers": [{"name": "a", "time": "1 s", "inputs": ["a"]}]})"),
            absl::StrCat("--model=", path, ": cyclic layers: \"a\" -> \"a\""));
}

}  // namespace
}  // namespace pipelab
