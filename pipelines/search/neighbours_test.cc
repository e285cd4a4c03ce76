#include "pipelines/search/neighbours.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/step/model_on_cluster.h"
#include "tests/support/step_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

StepConfig Config(const std::string& text) { return *ParseStepConfig("config", text); }

int Changes(const std::string& a, const std::string& b) {
  return ChangedValues(Config(a), Config(b));
}

TEST(ChangedValues, CountsWhatIsChosen) {
  const std::string base = "1f1b:P=4,T=2,D=4,M=16";
  EXPECT_EQ(Changes(base, base), 0);
  EXPECT_EQ(Changes(base, "1f1b:P=4,T=2,D=4,M=16,V=1,layout=3+2+2+3"), 0);
  EXPECT_EQ(Changes(base, "interleaved:P=4,T=2,D=4,V=2,M=16"), 1);
  EXPECT_EQ(Changes(base, "1f1b:P=4,T=2,D=4,b=2,M=8"), 1);
  EXPECT_EQ(Changes(base, "1f1b:P=2,T=2,D=8,M=8"), 1);
  EXPECT_EQ(Changes(base, "1f1b:P=2,T=4,D=4,M=16"), 2);
  EXPECT_EQ(Changes(base, "1f1b:P=4,T=1,D=8,M=8,recompute=blocks"), 2);
  EXPECT_EQ(Changes(base, "1f1b:P=4,T=2,D=4,M=16,recompute=blocks,rebuilt=1"), 1);
  EXPECT_EQ(Changes(base, "zbv:P=4,T=2,D=4,M=16,sharding=optimizer,sequence"), 3);
  EXPECT_EQ(Changes(base, "interleaved:P=1,T=2,D=16,V=8,M=4"), 1);
  EXPECT_EQ(Changes(base, "1f1b:P=4,T=2,D=2,M=32,C=2,context_exchange=ring"), 1);
  EXPECT_EQ(Changes("1f1b:P=4,D=2,M=32,C=2,context_exchange=ring", "1f1b:P=4,D=2,M=32,C=2"), 1);
  EXPECT_EQ(
      Changes("1f1b:P=4,D=4,M=4,sharding=gradients", "interleaved:P=1,D=16,V=8,M=1,sharding=fully"),
      1);
}

// All that a search looks at, simulated one by one, less what is too far away.
TEST(Neighbours, AreThoseOfAllThatAreNear) {
  const std::unique_ptr<ModelOnCluster> on = *ModelOnCluster::Load("gpt-small", "dgx-a100");
  SearchRequest space;
  space.methods = {MethodOf("1f1b"), MethodOf("interleaved"), MethodOf("zbv")};
  space.sequence = {false, true};
  space.top = 10000;
  const StepConfig config = Config("1f1b:P=2,T=2,D=2,b=2,M=4,sharding=optimizer");
  StepCache cache(on->step());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RankedStep> near,
                               NeighboursOf(&cache, config, space));
  SearchRequest all = space;
  all.devices = config.devices();
  all.batch = config.batch();
  all.simulate_all = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SearchResult result, Search(on->step(), all));
  std::vector<RankedStep> expected;
  for (const RankedStep& r : result.best) {
    if (ChangedValues(config, r.config) <= 2) expected.push_back(r);
  }
  EXPECT_LT(expected.size(), result.best.size());
  ASSERT_GT(expected.size(), 20);
  ASSERT_EQ(near.size(), expected.size());
  for (size_t i = 0; i < near.size(); ++i) {
    EXPECT_EQ(near[i].step_time, expected[i].step_time) << i;
  }
  space.top = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RankedStep> best,
                               NeighboursOf(&cache, config, space));
  ASSERT_EQ(best.size(), 3);
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(best[i].step_time, expected[i].step_time);
  }
}

TEST(Neighbours, AreNoneWhereNothingFits) {
  const std::unique_ptr<ModelOnCluster> on = *ModelOnCluster::Load("gpt-52b", "dgx-a100");
  SearchRequest space;
  space.methods = {MethodOf("1f1b")};
  StepCache cache(on->step());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RankedStep> near,
                               NeighboursOf(&cache, Config("1f1b:P=2,M=4"), space));
  EXPECT_THAT(near, testing::IsEmpty());
}

}  // namespace
}  // namespace pipelab
