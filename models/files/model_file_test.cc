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
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kFailedPrecondition);
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

TEST(FindModel, TakesTheTokensBehindAName) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph g, FindModel("--model", "llama-small@17"));
  EXPECT_EQ(g.layers[0].output_shape[0], 17);
  for (const auto& [word, tokens] :
       {std::make_pair("llama-3-70b@32k", 32768), std::make_pair("Llama-3.1-70B@128K", 131072),
        std::make_pair("meta-llama/Meta-Llama-3-8B@1k", 1024),
        std::make_pair("llama-3-70b", 8192)}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph other, FindModel("--model", word));
    EXPECT_EQ(other.layers[0].output_shape[0], tokens) << word;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const GptConfig config, FindLanguageModel("--model", word));
    EXPECT_EQ(config.tokens, tokens) << word;
  }
  const auto message = [](const char* word) {
    return std::string(FindModel("--model", word).status().message());
  };
  EXPECT_EQ(message("llama-small@0"),
            "--model=llama-small@0: behind @ must be the tokens of a sample, from 1 to 1048576, "
            "such as @4096 or @32k (k: 1024)");
  for (const char* word :
       {"llama-small@x", "llama-small@", "llama-small@k", "llama-small@-1k", "llama-small@2000k",
        "llama-small@1m", "llama-small@9007199254740993k"}) {
    EXPECT_THAT(message(word), HasSubstr("behind @ must be")) << word;
  }
  EXPECT_THAT(message("resnet-small@4"),
              HasSubstr("--model=resnet-small: its samples are what they are"));
}

}  // namespace
}  // namespace pipelab
