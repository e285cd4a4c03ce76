// What tests of grids share: a small GPT, cut between its blocks, on a cluster.
//
//   class GridTablesTest : public StepTest {};
//   TEST_F(GridTablesTest, ...) { Search(grid_, search); }
#ifndef PIPELAB_TESTS_SUPPORT_STEP_TESTING_H_
#define PIPELAB_TESTS_SUPPORT_STEP_TESTING_H_

#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

// 16 blocks, 0.8 x 10^9 parameters: 18 groups.
inline GroupedModel SmallGpt(bool tied_embeddings = false) {
  GptConfig c;
  c.layers = 16;
  c.hidden = 2048;
  c.heads = 16;
  c.tokens = 512;
  c.vocabulary = 8192;
  c.tied_embeddings = tied_embeddings;
  return GroupByName(BuildGpt(c).value());
}

class StepTest : public testing::Test {
 protected:
  StepTest() {
    grid_.model = &model_;
    grid_.cluster = &cluster_;
  }

  const GroupedModel model_ = SmallGpt();
  const ClusterSpec cluster_ = LoadCluster("--cluster", "dgx1-v100").value();
  StepModel grid_;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_STEP_TESTING_H_
