#include "models/files/model_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/files/model_file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Taken(absl::string_view word) {
  const NamedModel found = FindPublished(word);
  return found.model == nullptr ? "" : found.model->name;
}

TEST(ModelNames, AreFoundByTheirWords) {
  for (const auto& [word, name] : {
           std::make_pair("llama-3-70b", "llama-3-70b"),
           std::make_pair("Llama3-70B", "llama-3-70b"),
           std::make_pair("llama_3_70b", "llama-3-70b"),
           std::make_pair("meta-llama/Meta-Llama-3-70B", "llama-3-70b"),
           std::make_pair("llama-3.1-70b", "llama-3-70b"),
           std::make_pair("meta-llama/Llama-3.1-70B", "llama-3-70b"),
           std::make_pair("Llama-3.3-70B-Instruct", "llama-3-70b"),
           std::make_pair("llama3.1-405b", "llama-3-405b"),
           std::make_pair("Llama-2-7b-chat-hf", "llama-2-7b"),
           std::make_pair("qwen3-235b", "qwen3-235b-a22b"),
           std::make_pair("qwen3-30b", "qwen3-30b-a3b"),
           std::make_pair("Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"),
           std::make_pair("Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
           std::make_pair("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
           std::make_pair("google/gemma-2-9b-it", "gemma-2-9b"),
           std::make_pair("deepseek-v3-671b", "deepseek-v3"),
           std::make_pair("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
           std::make_pair("deepseek-r1", "deepseek-v3"),
           std::make_pair("moonshotai/Kimi-K2-Instruct-0905", "kimi-k2"),
           std::make_pair("mixtral", "mixtral-8x7b"),
           std::make_pair("Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
           std::make_pair("mixtral_small", "mixtral-small"),
           std::make_pair("gpt3-175b", "terapipe-175b"),
           std::make_pair("bert-base-uncased", "bert-base"),
           std::make_pair("candle_uno", "candle-uno"),
       }) {
    EXPECT_EQ(Taken(word), name) << word;
    EXPECT_EQ(FindPublished(word).note.empty(), absl::string_view(word) == name) << word;
  }
}

// Another version or size is another model, and a family of several is none.
TEST(ModelNames, AreNotFoundWhereAnotherModelIsMeant) {
  for (const char* word : {"llama",
                           "llama-3",
                           "llama-70b",
                           "llama-4-70b",
                           "llama-3.2-1b",
                           "qwen3",
                           "qwen3-32b",
                           "qwen-7b",
                           "deepseek-v2",
                           "mixtral-8x22b",
                           "mistral-7b-v0.3",
                           "gpt",
                           "gpt-7b",
                           "bert",
                           "resnet-1001",

                           "70b",
                           "235b",
                           "a",
                           "instruct",
                           "2507",
                           "",
                           "/",
                           "Qwen/"}) {
    EXPECT_EQ(Taken(word), "") << word;
  }
}

TEST(ModelNames, NotesAndRefusals) {
  const auto notes = [](const char* word) {
    const absl::StatusOr<ModelGraph> graph = FindModel("--model", word);
    EXPECT_THAT(graph, IsOk()) << word;
    return graph.ok() ? graph->notes : std::vector<std::string>{"refused"};
  };
  EXPECT_THAT(notes("llama-3-8b"), ElementsAre());
  EXPECT_THAT(notes("Llama3-8B@4096"), ElementsAre("--model=Llama3-8B: llama-3-8b is taken"));
  EXPECT_THAT(notes("meta-llama/Llama-3.1-8B"),
              ElementsAre("--model=meta-llama/Llama-3.1-8B: llama-3-8b is taken, which has its "
                          "architecture"));
  EXPECT_THAT(notes("mixtral"), ElementsAre("--model=mixtral: mixtral-8x7b is taken"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GptConfig c, FindLanguageModel("--model", "qwen3-30b"));
  EXPECT_EQ(c.layers, 48);
  const auto refusal = [](const char* word) {
    return std::string(FindModel("--model", word).status().message());
  };
  EXPECT_THAT(refusal("llama-3"),
              HasSubstr("--model=llama-3: no such model, and no file, whose name would end in "
                        ".json or .txt; did you mean llama-3-8b, llama-3-70b or llama-3-405b?"));
  EXPECT_THAT(refusal("llama-405b"), HasSubstr("did you mean llama-3-405b or llama-3.1-405b?"));
  EXPECT_THAT(refusal("llama-4-70b"), HasSubstr("did you mean llama-2-70b, llama-3-70b, llama-3."));
  EXPECT_THAT(refusal("qwen3"), HasSubstr("did you mean qwen3-0.6b or qwen3-8b?"));
  EXPECT_THAT(refusal("Qwen/Qwen3-32B"),
              HasSubstr("did you mean qwen2.5-32b, qwen3-0.6b or qwen3-8b?"));
  EXPECT_THAT(refusal("mixtral-8x22b"), HasSubstr("did you mean mixtral-8x7b?"));
  EXPECT_THAT(refusal("zzz"), HasSubstr("; there are transformer-l-3, "));
}

// Every other name is of a model that there is, and is no model's own.
TEST(ModelNames, OtherNamesAreOfKnownModels) {
  for (const PublishedModel& m : PublishedModels()) {
    EXPECT_EQ(FindPublished(m.name).model, &m);
    EXPECT_EQ(FindPublished(m.name).note, "");
  }
}

}  // namespace
}  // namespace pipelab
