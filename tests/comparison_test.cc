// Comparing schemes on networks with branches: stages side by side, and outputs of so many
// consumers that stages add their gradients in another order than layers do.
#include "experiments/training/comparison.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layers/test_layers.h"
#include "models/layers/test_nets.h"
#include "models/zoo/branch_stages.h"
#include "tests/small_gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

ComparisonOptions Options(int devices, std::vector<std::string> schemes) {
  ComparisonOptions options;
  options.schemes = std::move(schemes);
  options.devices = devices;
  options.micro_batches = 8;
  options.micro_batch_size = kSmallSamples;
  options.steps = 4;
  options.optimizer = SmallAdam();
  return options;
}

ModelGraph Net(const std::string& name) {
  for (ModelGraph& graph : SmallNets(/*dropout=*/0.1, Activation::kRelu)) {
    if (graph.name == name) return std::move(graph);
  }
  ADD_FAILURE() << name;
  return ModelGraph();
}

// The encoder's output has three readers, which stages cut apart. A serial loop that adds by stages
// has the same bits.
TEST(Comparison, StagesThatAddInAnotherOrderHaveTheBitsOfALoopThatAddsByStages) {
  const ModelGraph graph = Net("transformer");
  const RandomData data(TestFieldsOf(graph));
  int by_stage = 0, plain = 0;
  for (int devices : {2, 3, 4, 5, 6}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const ComparisonResult result,
        Compare(graph, data, Options(devices, {"gpipe", "1f1b", "breadth_first"})));
    EXPECT_THAT(CheckEquality(result), IsOk());
    for (const SchemeResult& scheme : result.schemes) {
      if (scheme.part.empty()) {
        ++plain;
        EXPECT_EQ(scheme.losses, result.serial_losses) << scheme.config.scheme << " on " << devices;
      } else {
        ++by_stage;
        EXPECT_EQ(scheme.part, "stage");
        EXPECT_EQ(scheme.losses, scheme.serial_by_part)
            << scheme.config.scheme << " on " << devices;
      }
    }
  }
  EXPECT_GT(by_stage, 0);
  EXPECT_GT(plain, 0);
}

TEST(Comparison, SchemesOfAStageGraphTakeBranchesAndTheOthersAChain) {
  const ModelGraph graph = Net("dlrm");
  const RandomData data(TestFieldsOf(graph));
  ComparisonOptions options = Options(2, {"1f1b", "graph"});
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.parallel_stages, BranchStages(graph, 1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ComparisonResult result, Compare(graph, data, options));
  EXPECT_THAT(CheckEquality(result), IsOk());
  EXPECT_EQ(result.schemes[0].program.schedule.num_stages(), 2);
  const Schedule& parallel = result.schemes[1].program.schedule;
  EXPECT_EQ(parallel.num_stages(), 5);  // two dense branches, two bags, the join
  EXPECT_FALSE(parallel.stages.IsChain());
  EXPECT_EQ(result.schemes[1].losses, result.serial_losses);
}

TEST(Comparison, SaysWhatDiffers) {
  ComparisonResult result;
  result.serial_losses = {2, 1};
  SchemeResult scheme;
  scheme.config.scheme = "odd";
  scheme.losses = {2, 1.5};
  scheme.must_be_bit_equal = true;
  result.schemes = {scheme};
  EXPECT_THAT(CheckEquality(result),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("odd does not reproduce serial training: DIFFERS by 5.0e-01")));
}

}  // namespace
}  // namespace pipelab
