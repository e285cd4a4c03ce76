// What the tests of a step share: a GPT of 16 blocks, with a layer more at each end of the chain, on
// V100s.
//
//   TEST_F(GroupedStepTest, ...) { Evaluate(Config("1f1b", /*pipeline=*/4, 1, 8)).step_time; }
#ifndef PIPELAB_TESTS_SUPPORT_GROUPED_STEP_H_
#define PIPELAB_TESTS_SUPPORT_GROUPED_STEP_H_

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"
#include "tools/base/status_matchers.h"

namespace pipelab {

inline GroupedModel GroupedGpt() {
  GptConfig c;
  c.layers = 16;
  c.hidden = 1024;
  c.heads = 16;
  c.tokens = 512;
  c.vocabulary = 8192;
  GroupedModel m;
  m.graph = BuildGpt(c).value();
  for (size_t i = 0; i < m.graph.layers.size(); ++i) {
    m.group_of_layer.push_back(static_cast<int>(i + 1) / 2);
  }
  return m;
}

inline StepConfig Config(const std::string& scheme, int pipeline, int data, int micro_batches) {
  StepConfig c;
  c.scheme = scheme;
  c.pipeline = pipeline;
  c.data = data;
  c.micro_batches = micro_batches;
  return c;
}

class GroupedStepTest : public testing::Test {
 protected:
  GroupedStepTest() {
    grid_.model = &model_;
    grid_.cluster = &cluster_;
  }

  StepPrediction Evaluate(const StepConfig& c) const {
    auto point = PredictStep(grid_, c);
    EXPECT_THAT(point, IsOk());
    return *std::move(point);
  }

  const GroupedModel model_ = GroupedGpt();
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx1-v100").value();
  StepModel grid_;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_GROUPED_STEP_H_
