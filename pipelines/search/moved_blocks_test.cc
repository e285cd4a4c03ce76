#include "pipelines/search/moved_blocks.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

class MovedBlocksTest : public testing::Test {
 protected:
  // Six blocks, whose head is as heavy as two or three.
  MovedBlocksTest()
      : on_(ModelOnCluster::Of(*BuildGpt(LlamaConfig(/*layers=*/6, /*hidden=*/512, /*heads=*/8,
                                                     /*feed_forward=*/1536, /*tokens=*/1024,
                                                     /*vocabulary=*/32768)),
                               *LoadCluster("--cluster", "dgx-h100"), NumberType::kBf16)),
        cache_(on_->step()) {}

  RankedStep Priced(const StepConfig& c) {
    const absl::StatusOr<StepPrediction> p = PredictStep(&cache_, c);
    EXPECT_THAT(p, IsOk()) << c.ToString();
    RankedStep step;
    step.config = c;
    if (p.ok()) step.step_time = p->step_time;
    return step;
  }

  // The least of all contiguous cuts between groups, the first and the last of which are embedding
  // and head.
  Nanoseconds LeastOfAll(StepConfig c, int stages) {
    const GroupedModel& model = on_->model();
    std::vector<int> layers(model.num_groups());
    for (const int group : model.group_of_layer) ++layers[group];
    Nanoseconds least = Priced(c).step_time;
    std::vector<int> of_stage;
    const std::function<void(int)> cut = [&](int group) {
      if (static_cast<int>(of_stage.size()) == stages) {
        if (group < model.num_groups()) return;
        c.layout = absl::StrJoin(of_stage, "+");
        least = std::min(least, Priced(c).step_time);
        return;
      }
      of_stage.push_back(0);
      for (int g = group; g < model.num_groups(); ++g) {
        of_stage.back() += layers[g];
        cut(g + 1);
      }
      of_stage.pop_back();
    };
    cut(0);
    return least;
  }

  std::unique_ptr<ModelOnCluster> on_;
  StepCache cache_;
};

TEST_F(MovedBlocksTest, ComesNearTheBestOfAllCuts) {
  int cases = 0, best = 0;
  for (const char* text :
       {"1f1b:P=2,M=2", "1f1b:P=2,M=8", "1f1b:P=3,M=3", "1f1b:P=3,M=9", "1f1b:P=4,M=4",
        "1f1b:P=4,M=12", "gpipe:P=3,M=6", "interleaved:P=2,V=2,M=4", "interleaved:P=2,V=2,M=8",
        "zb_h1:P=3,M=6", "zb_h1:P=4,M=8", "breadth_first:P=2,V=2,M=4"}) {
    SCOPED_TRACE(text);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig c, ParseStepConfig("config", text));
    const RankedStep rule = Priced(c);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const absl::optional<RankedStep> moved,
                                 WithMovedBlocks(&cache_, SearchRequest(), rule));
    const Nanoseconds least = LeastOfAll(c, c.pipeline * std::max(c.virtual_stages, 1));
    const Nanoseconds found = moved.has_value() ? moved->step_time : rule.step_time;
    if (moved.has_value()) {
      EXPECT_LT(found, rule.step_time);
      EXPECT_EQ(Priced(moved->config).step_time, found) << moved->config.ToString();
    }
    EXPECT_GE(found, least);
    EXPECT_LE(static_cast<double>(found.value()), 1.05 * static_cast<double>(least.value()));
    best += found == least ? 1 : 0;
    ++cases;
  }
  EXPECT_GE(best * 2, cases) << best << " of " << cases;
}

TEST_F(MovedBlocksTest, LeavesWhatIsFixedOrHasNoStages) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig c, ParseStepConfig("config", "1f1b:P=3,M=9"));
  SearchRequest fixed;
  PIPELAB_ASSERT_OK_AND_ASSIGN(fixed.fixed, ParseFixedKeys("--fixed", "cut=blocks"));
  EXPECT_FALSE(WithMovedBlocks(&cache_, fixed, Priced(c))->has_value());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig one, ParseStepConfig("config", "1f1b:P=1,M=9"));
  EXPECT_FALSE(WithMovedBlocks(&cache_, SearchRequest(), Priced(one))->has_value());
}

TEST_F(MovedBlocksTest, StaysWithinTheMemory) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig c,
                               ParseStepConfig("config", "interleaved:P=2,V=2,M=4"));
  SearchRequest search;
  search.memory = Bytes(1);
  EXPECT_FALSE(WithMovedBlocks(&cache_, search, Priced(c))->has_value());
}

}  // namespace
}  // namespace pipelab
