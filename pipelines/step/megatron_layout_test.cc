#include "pipelines/step/megatron_layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "models/zoo/gpt_testing.h"
#include "models/zoo/mmt.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

std::string WrittenAgain(absl::string_view layout) {
  const auto stages = ParseMegatronLayout(layout);
  return stages.ok() ? FormatMegatronLayout(*stages) : std::string(stages.status().message());
}

// Stages of so many layers of the graph, one after another.
std::string Written(const ModelGraph& graph, const std::vector<int>& sizes) {
  std::vector<int> stage_of_layer;
  for (size_t s = 0; s < sizes.size(); ++s) {
    stage_of_layer.insert(stage_of_layer.end(), sizes[s], static_cast<int>(s));
  }
  const auto stages = MegatronStagesOf(graph, stage_of_layer);
  return stages.ok() ? FormatMegatronLayout(*stages) : std::string(stages.status().message());
}

TEST(ParseMegatronLayout, KnowsTheDocumentedForms) {
  // DeepSeek-V3 on 16 devices with two stages each.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto deepseek, ParseMegatronLayout("Et*3|(tt|)*29,m|L"));
  ASSERT_EQ(deepseek.size(), 32);
  EXPECT_EQ(deepseek[0].transformers, 3);
  EXPECT_EQ(deepseek[29].transformers, 2);
  EXPECT_EQ(deepseek[30].token_heads, 1);
  EXPECT_TRUE(deepseek[31].loss);
  // Its help text's, with an empty stage.
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto help, ParseMegatronLayout("E|(t|)*3,m|m||L"));
  ASSERT_EQ(help.size(), 8);
  EXPECT_TRUE(help[6].empty());
  // What its parser's comments print: parentheses are repeated as text, over stages' ends.
  EXPECT_EQ(WrittenAgain("E(t|t)*2L"), "Et|t*2|tL");
  EXPECT_EQ(WrittenAgain("E,t|(t*2|)*3,t*0L"), "Et|(t*2|)*3L");
}

TEST(ParseMegatronLayout, SaysWhatIsWrong) {
  EXPECT_THAT(WrittenAgain("Ettd|L"), HasSubstr("'d' is no layer; there are E, t, m, L and |"));
  EXPECT_THAT(WrittenAgain("ETT|L"), HasSubstr("'T' is no layer; there are E, t, m, L and |; did"));
  EXPECT_THAT(WrittenAgain("tt|tL"), HasSubstr("E, the embedding, must be first"));
  EXPECT_THAT(WrittenAgain("Et|t"), HasSubstr("L, the loss, must be last"));
  EXPECT_THAT(WrittenAgain("Et|LtL"), HasSubstr("L, the loss, must be last, and once"));
  EXPECT_THAT(WrittenAgain("Em|tL"), HasSubstr("t behind m"));
  EXPECT_THAT(WrittenAgain("E(tt|L"), HasSubstr("'(' is not closed"));
  EXPECT_THAT(WrittenAgain("E(tt|)L"), HasSubstr("a number must follow parentheses"));
  EXPECT_THAT(WrittenAgain("E((t|)*2t|)*2L"), HasSubstr("parentheses do not nest"));
  EXPECT_THAT(WrittenAgain("Et*|L"), HasSubstr("must follow '*'"));
  EXPECT_THAT(WrittenAgain("E(t*1000000|)*1000000L"), HasSubstr("more than 1048576 letters"));
  EXPECT_THAT(WrittenAgain(""), HasSubstr("E, the embedding, must be first"));
}

TEST(FormatMegatronLayout, SaysEveryStage) {
  const ModelGraph gpt = SmallestGpt(12);  // an embedding, 24 layers, a head
  EXPECT_EQ(Written(gpt, {7, 6, 6, 7}), "Et*3|(t*3|)*2t*3L");
  EXPECT_EQ(Written(gpt, {1, 2, 2, 20, 1}), "E|(t|)*2t*10|L");
  EXPECT_EQ(Written(gpt, {26}), "Et*12L");
  EXPECT_EQ(Written(gpt, {5, 21}), "Et*2|t*10L");
}

TEST(FormatMegatronLayout, ReadsBackWithEmptyStagesAndHeads) {
  for (uint64_t round = 0; round < 2000; ++round) {
    const CounterRng rng(7, round);
    std::vector<int64_t> layers(1 + rng.Below(0, 9));
    for (size_t s = 0; s < layers.size(); ++s) {
      layers[s] = static_cast<int64_t>(rng.Below(s + 1, 3));
    }
    std::vector<MegatronStage> stages = StagesOfTransformers(layers);
    stages.back().token_heads = static_cast<int64_t>(rng.Below(99, 3));
    const std::string text = FormatMegatronLayout(stages);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto again, ParseMegatronLayout(text));
    EXPECT_EQ(again, stages) << text;
  }
}

TEST(StageOfLayerIn, IsTheInverseOverAGrid) {
  const ModelGraph gpt = SmallestGpt(6);
  for (int a = 1; a <= 11; a += 2) {
    for (int b = 2; a + b <= 13; b += 2) {
      const std::vector<int> sizes = {a, b, 14 - a - b};
      PIPELAB_ASSERT_OK_AND_ASSIGN(const auto stages, ParseMegatronLayout(Written(gpt, sizes)));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> of_layer, StageOfLayerIn(stages, gpt));
      std::vector<int> counted(3);
      for (const int s : of_layer) ++counted[s];
      EXPECT_EQ(counted, sizes);
    }
  }
}

TEST(StageOfLayerIn, RefusesWhatNoStageHas) {
  const auto reason = [](absl::string_view layout) {
    return StageOfLayerIn(*ParseMegatronLayout(layout), SmallestGpt(4)).status();
  };
  EXPECT_THAT(reason("Ett||ttL"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stage 1 is empty")));
  EXPECT_THAT(reason("Ett|ttmL"), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("m: the model predicts one token")));
  EXPECT_THAT(reason("Ett|tttL"), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("5 Transformer layers, but the model has 4")));
}

TEST(StageOfLayerIn, HeadsForFurtherTokensAreWithTheLoss) {
  GptConfig config;
  config.layers = 4;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = 8;
  config.vocabulary = 50;
  for (const int64_t further : {1, 2}) {
    config.further_tokens = further;
    const ModelGraph gpt = BuildGpt(config).value();
    const std::string heads = further == 1 ? "m" : "m*2";
    for (const char* before : {"Et*2|t*2", "Et|t|t*2", "Et*4|", "E|t*4"}) {
      const std::string layout = absl::StrCat(before, heads, "L");
      PIPELAB_ASSERT_OK_AND_ASSIGN(const auto stages, ParseMegatronLayout(layout));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> of_layer, StageOfLayerIn(stages, gpt));
      EXPECT_EQ(std::count(of_layer.begin(), of_layer.end(), of_layer.back()),
                1 + 4 * further + 2 * stages.back().transformers);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const auto again, MegatronStagesOf(gpt, of_layer));
      EXPECT_EQ(again, stages);
    }
    const auto reason = [&](absl::string_view layout) {
      return std::string(StageOfLayerIn(*ParseMegatronLayout(layout), gpt).status().message());
    };
    EXPECT_THAT(reason("Et*2|t*2L"), HasSubstr(absl::StrCat("all ", further, " of the model")));
    EXPECT_THAT(reason("Et*2|t*2mmmL"), HasSubstr("stage 1 has 3 heads for further tokens"));
    EXPECT_THAT(reason(absl::StrCat("Et*4", heads, "|L")), HasSubstr("are with L here"));
  }
}

TEST(MegatronStagesOf, RefusesWhatItHasNoLettersFor) {
  EXPECT_THAT(Written(SmallestGpt(2), {2, 4}),
              HasSubstr("stages 0 and 1 share the Transformer layer"));
  MmtConfig config;
  config.branches = 2;
  config.layers = 1;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = 8;
  config.feed_forward = 32;
  config.vocabulary = 50;
  const ModelGraph mmt = *BuildMmt(config);
  EXPECT_THAT(Written(mmt, {3, static_cast<int>(mmt.layers.size()) - 3}),
              HasSubstr("is neither the embedding"));
}

}  // namespace
}  // namespace pipelab
