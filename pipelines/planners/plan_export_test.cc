#include "pipelines/planners/plan_export.h"

#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "models/zoo/mmt.h"
#include "pipelines/ir/text.h"
#include "pipelines/planners/model_problem.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

ModelGraph Gpt(int64_t layers) {
  GptConfig config;
  config.layers = layers;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = 8;
  config.vocabulary = 50;
  return *BuildGpt(config);
}

// Layers as ranges of these lengths, on as many copies each.
absl::StatusOr<PlanPipeline> Pipeline(const ModelGraph& graph, const std::vector<int>& sizes,
                                      const std::vector<int64_t>& copies) {
  Plan plan;
  int layer = 0;
  for (size_t s = 0; s < sizes.size(); ++s) {
    PlanStage& stage = plan.stages.emplace_back();
    for (int i = 0; i < sizes[s]; ++i) stage.layers.push_back(layer++);
    stage.variants.assign(sizes[s], 0);
    stage.data = copies[s];
  }
  PlanPipelineOptions options;
  options.batch_samples = 16;
  options.micro_batch_size = 2;
  return MakePlanPipeline(graph, ModelOperators(graph, {}), plan, options);
}

std::string Layout(const ModelGraph& graph, const std::vector<int>& sizes) {
  const auto pipeline = Pipeline(graph, sizes, std::vector<int64_t>(sizes.size(), 1));
  EXPECT_THAT(pipeline, IsOk());
  const auto layout = MegatronLayout(graph, pipeline->partition);
  return layout.ok() ? *layout : std::string(layout.status().message());
}

// What Megatron-LM's parser makes of a layout: each stage's letters.
std::vector<std::string> Expand(std::string layout) {
  for (size_t close; (close = layout.find(")*")) != std::string::npos;) {
    const size_t open = layout.rfind('(', close), number = close + 2;
    size_t end = number;
    while (end < layout.size() && isdigit(layout[end]) != 0) ++end;
    std::string all;
    for (int i = std::stoi(layout.substr(number, end - number)); i > 0; --i) {
      all += layout.substr(open + 1, close - open - 1);
    }
    layout = layout.substr(0, open) + all + layout.substr(end);
  }
  for (size_t star; (star = layout.find('*')) != std::string::npos;) {
    size_t end = star + 1;
    while (end < layout.size() && isdigit(layout[end]) != 0) ++end;
    const int n = std::stoi(layout.substr(star + 1, end - star - 1));
    layout = layout.substr(0, star - 1) + std::string(n, layout[star - 1]) + layout.substr(end);
  }
  std::vector<std::string> stages = {""};
  for (char c : layout) {
    if (c == '|') {
      stages.emplace_back();
    } else {
      stages.back() += c;
    }
  }
  return stages;
}

TEST(MegatronLayout, SaysEveryStage) {
  const ModelGraph gpt = Gpt(12);  // an embedding, 24 layers, a head
  EXPECT_EQ(Layout(gpt, {7, 6, 6, 7}), "Et*3|(t*3|)*2t*3L");
  EXPECT_EQ(Layout(gpt, {1, 2, 2, 20, 1}), "E|(t|)*2t*10|L");
  EXPECT_EQ(Layout(gpt, {26}), "Et*12L");
  EXPECT_EQ(Layout(gpt, {5, 21}), "Et*2|t*10L");
}

TEST(MegatronLayout, ReadsBackOverAGrid) {
  const ModelGraph gpt = Gpt(6);
  for (int a = 1; a <= 11; a += 2) {
    for (int b = 2; a + b <= 13; b += 2) {
      const std::vector<std::string> stages = Expand(Layout(gpt, {a, b, 14 - a - b}));
      ASSERT_EQ(stages.size(), 3);
      EXPECT_EQ(stages[0], "E" + std::string((a - 1) / 2, 't'));
      EXPECT_EQ(stages[1], std::string(b / 2, 't'));
      EXPECT_EQ(stages[2], std::string((13 - a - b) / 2, 't') + "L");
    }
  }
}

TEST(MegatronLayout, RefusesWhatItHasNoWordsFor) {
  EXPECT_THAT(Layout(Gpt(2), {2, 4}), HasSubstr("stages 0 and 1 share the Transformer layer"));
  MmtConfig config;
  config.branches = 2;
  config.layers = 1;
  config.hidden = 16;
  config.heads = 2;
  config.tokens = 8;
  config.feed_forward = 32;
  config.vocabulary = 50;
  const ModelGraph mmt = *BuildMmt(config);
  EXPECT_THAT(Layout(mmt, {3, static_cast<int>(mmt.layers.size()) - 3}),
              HasSubstr("is neither the embedding"));
}

// Copies take the 8 micro-batches in turn: each runs a schedule of its share of them.
TEST(PyTorchCsv, IsThatOfOneCopy) {
  const ModelGraph gpt = Gpt(6);
  for (const int copies : {1, 2}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule wanted, MakeSchedule("1f1b", {4, 8 / copies}));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text, ToCsv(wanted));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanPipeline pipeline,
                                 Pipeline(gpt, {3, 4, 4, 3}, std::vector<int64_t>(4, copies)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string csv, PyTorchCsv(pipeline));
    EXPECT_EQ(csv, text);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanPipeline uneven, Pipeline(gpt, {7, 7}, {1, 2}));
  EXPECT_THAT(PyTorchCsv(uneven), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("stage 1 has 2 copies, and stage 0 1")));
}

}  // namespace
}  // namespace pipelab
