#include "tools/base/did_you_mean.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

TEST(DidYouMean, NamesTheNearest) {
  const std::vector<absl::string_view> schemes = {"gpipe", "1f1b", "zb_h1", "zb_h2", "interleaved"};
  EXPECT_EQ(DidYouMean("1F1B", schemes), "; did you mean 1f1b?");
  EXPECT_EQ(DidYouMean("zb-h2", schemes), "; did you mean zb_h2?");
  EXPECT_EQ(DidYouMean("zbh1", schemes), "; did you mean zb_h1?");
  EXPECT_EQ(DidYouMean("gpiep", schemes), "; did you mean gpipe?");  // swapped
  EXPECT_EQ(DidYouMean("intreleavd", schemes), "; did you mean interleaved?");
  EXPECT_EQ(DidYouMean("inter", schemes), "; did you mean interleaved?");  // its beginning
  EXPECT_EQ(DidYouMean("micro-batches", {"machines", "micro_batches"}, "--"),
            "; did you mean --micro_batches?");
}

TEST(DidYouMean, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(DidYouMean("moon", {"dgx-a100", "summit"}), "");
  EXPECT_EQ(DidYouMean("", {"a", "b"}), "");
  EXPECT_EQ(DidYouMean("ab", {"cd", "abcdef"}), "");
  EXPECT_EQ(DidYouMean("gpipe", {}), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'a'), {"aaaa"}), "");
}

TEST(NearestOrAll, ListsAllWhereNothingIsNear) {
  EXPECT_EQ(NearestOrAll("gpiep", {"gpipe", "1f1b"}), "; did you mean gpipe?");
  EXPECT_EQ(NearestOrAll("moon", {"gpipe", "1f1b"}), "; there are gpipe, 1f1b");
}

TEST(DidYouMean, TheNearerWins) {
  EXPECT_EQ(DidYouMean("zb_h1", {"zb_h2", "zb_h1"}), "; did you mean zb_h1?");
  EXPECT_EQ(DidYouMean("devices", {"device_speed", "device"}), "; did you mean device?");
}

TEST(NameWords, AreLettersAndNumbersWithUnits) {
  EXPECT_THAT(NameWords("Llama3.1-70B"), ElementsAre("llama", "3.1", "70b"));
  EXPECT_THAT(NameWords("mixtral_8x7b"), ElementsAre("mixtral", "8x", "7b"));
  EXPECT_THAT(NameWords("qwen3-235b-A22B"), ElementsAre("qwen", "3", "235b", "a", "22b"));
  EXPECT_THAT(NameWords("v0.1.. 2."), ElementsAre("v", "0.1", "2"));
  EXPECT_THAT(NameWords("--./"), ElementsAre());
}

TEST(DidYouMean, GoesByWordsBeforeLetters) {
  const std::vector<absl::string_view> models = {"qwen2.5-7b",    "qwen3-8b",   "qwen3-30b-a3b",
                                                 "llama-2-70b",   "llama-7b",   "qwen3-235b-a22b",
                                                 "terapipe-175b", "llama-3-70b"};
  EXPECT_EQ(DidYouMean("qwen3-235b", models), "; did you mean qwen3-235b-a22b?");
  EXPECT_EQ(DidYouMean("qwem3-235b", models), "; did you mean qwen3-235b-a22b?");
  EXPECT_EQ(DidYouMean("qwen3-30b", models), "; did you mean qwen3-30b-a3b?");
  EXPECT_EQ(DidYouMean("llama-4-70b", models), "; did you mean llama-2-70b or llama-3-70b?");
  EXPECT_EQ(DidYouMean("falcon-7b", models), "");  // a size alone is no name
  // A slip is one in letters: other numbers are other names.
  EXPECT_EQ(DidYouMean("lama-3-70b", models), "; did you mean llama-3-70b?");
  EXPECT_EQ(DidYouMean("llama-2-7b", models), "; did you mean llama-7b?");
  EXPECT_EQ(DidYouMean("h100", {"dgx-a100", "p100-pcie", "dgx-h100", "h100-cloud"}),
            "; did you mean dgx-h100 or h100-cloud?");
  EXPECT_EQ(DidYouMean("pipeline-size", {"micro-size", "pipeline-model-size"}, "--"),
            "; did you mean --pipeline-model-size?");
  EXPECT_EQ(DidYouMean("a", {"a-1", "a-2", "a-3", "a-4", "a-5", "a-6"}),
            "; did you mean a-1, a-2, a-3, a-4 or a-5?");
}

TEST(MeantByWords, AreTheSameWordsOrABeginning) {
  const std::vector<absl::string_view> models = {"mixtral-8x7b", "llama-2-70b", "llama-3-8b",
                                                 "llama-3-70b", "llama-3-70b-long"};
  for (absl::string_view name : {"llama-3-70b", "Llama3-70B", "llama_3_70b", "LLAMA 3 70b"}) {
    EXPECT_THAT(MeantByWords(name, models), ElementsAre("llama-3-70b")) << name;
  }
  EXPECT_THAT(MeantByWords("mixtral", models), ElementsAre("mixtral-8x7b"));
  EXPECT_THAT(MeantByWords("llama-2", models), ElementsAre("llama-2-70b"));
  EXPECT_THAT(MeantByWords("llama3", models),
              ElementsAre("llama-3-8b", "llama-3-70b", "llama-3-70b-long"));
  for (absl::string_view name :
       {"llama-70b", "70b", "llama-3-7", "mixtra", "mixtral-8x7b-v2", ""}) {
    EXPECT_THAT(MeantByWords(name, models), ElementsAre()) << name;
  }
}

}  // namespace
}  // namespace pipelab
