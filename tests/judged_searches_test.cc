// What a search finds for the published runs that experiments/modern reads: nothing that
// Megatron-LM runs beats it, not the run's own configuration and not one near it or near the
// search's best. Two small ones; as many as PIPELAB_REQUESTS says (.ci/long).
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "experiments/commands/recipe_input.h"
#include "experiments/commands/system_search.h"
#include "experiments/modern/modern_machines.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_results.h"
#include "gtest/gtest.h"
#include "pipelines/search/search.h"
#include "pipelines/step/megatron_layout.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tests/support/random_changes.h"
#include "tools/base/draws.h"
#include "tools/base/file.h"
#include "tools/base/shared_data.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kFewRequests = 2;
constexpr int64_t kFewDevices = 16;

// A run of each model, number of GPUs, batch and length that has any.
std::vector<std::pair<std::string, ModernStep>> DistinctSteps(const ModernData& data,
                                                              const ModernMachines& machines) {
  std::map<std::string, ModernStep> steps;
  for (const ModernRow& row : data.rows) {
    const absl::StatusOr<ModernStep> step = StepOfRow(row, data.models, machines);
    if (!step.ok() || step->adapters.has_value()) continue;
    if (NumRequests(kFewRequests) == kFewRequests && step->config.devices() > kFewDevices) continue;
    steps.emplace(absl::StrCat(row.model, " ", row.gpu, " ", row.gpus, " ", row.batch, " ",
                               row.tokens, " ", row.precision),
                  *step);
  }
  return {steps.begin(), steps.end()};
}

class JudgedSearch {
 public:
  explicit JudgedSearch(const ModernStep& step)
      : step_(step), model_(ModernStepModel::Of(step).value()), cache_(model_.On(step)) {}

  void Run(uint64_t seed) {
    Recipe plain;
    plain.model = step_.model;
    plain.type = step_.type;
    plain.optimizer_tensors = step_.optimizer_tensors;
    plain.config.state = step_.config.state;
    ASSERT_THAT(SetStages(StagesOfTransformers({step_.model.layers}), &plain), IsOk());
    recipe_ = plain;
    const StepConfig& own = step_.config;
    SearchRequest request = WholeSpace(cache_.model(), own.devices(), own.batch());
    request.together = true;
    const absl::StatusOr<SearchResult> found = SearchSystem(*system_, recipe_, &cache_, request);
    if (!found.ok()) {
      EXPECT_TRUE(absl::IsNotFound(found.status())) << found.status();
      EXPECT_FALSE(TimeOf(own).has_value()) << own.ToString();
      return;
    }
    best_ = found->best[0];
    ExpectSlower(own);
    Draws draws(seed, "judged_searches_test");
    for (const StepConfig& start : {own, best_.config}) {
      for (int i = 0; i < 40; ++i) {
        StepConfig c = start;
        c.layout.clear();
        for (int64_t changes = 1 + draws.Below(2); changes > 0; --changes) ChangeOne(&draws, &c);
        ExpectSlower(c);
      }
    }
  }

  int64_t compared() const { return compared_; }

 private:
  // The time of what Megatron-LM runs of it; none where its options cannot say it, or it does not
  // fit.
  absl::optional<Nanoseconds> TimeOf(const StepConfig& config) {
    if (config.batch() != step_.config.batch() || config.devices() != step_.config.devices()) {
      return absl::nullopt;
    }
    const absl::StatusOr<StepConfig> runs = ExportAndRead(*system_, recipe_, config, &cache_);
    if (!runs.ok()) return absl::nullopt;
    const absl::StatusOr<StepPrediction> p = PredictStep(&cache_, *runs);
    if (!p.ok() || !p->fits) return absl::nullopt;
    return p->step_time;
  }

  void ExpectSlower(const StepConfig& config) {
    const absl::optional<Nanoseconds> time = TimeOf(config);
    if (!time.has_value()) return;
    ++compared_;
    EXPECT_GE(*time, best_.step_time) << config.ToString() << " beats " << best_.config.ToString();
  }

  const ModernStep& step_;
  const ModernStepModel model_;
  StepCache cache_;
  const RecipeSystem* const system_ = FindRecipeSystem("megatron").value();
  Recipe recipe_;
  RankedStep best_;
  int64_t compared_ = 0;
};

class JudgedSearches : public testing::TestWithParam<int> {};

TEST_P(JudgedSearches, NothingThatRunsIsFaster) {
  const std::string folder = SharedDataFolder("measured");
  if (folder.empty() || !ReadFile(folder + "/modern_training_rows.csv").ok()) {
    GTEST_SKIP() << NoSharedData("measured");
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernData data, LoadModernData(folder));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModernMachines machines, LoadModernMachines());
  const auto steps = DistinctSteps(data, machines);
  const int parts = NumRequests(kFewRequests);
  // Each its part of all, or as few as are asked for.
  const auto first = steps.size() * GetParam() / parts;
  if (first == steps.size() * (GetParam() + 1) / parts) return;
  const auto& [name, step] = steps[first];
  SCOPED_TRACE(name);
  JudgedSearch search(step);
  search.Run(static_cast<uint64_t>(GetParam()));
  RecordProperty("compared", static_cast<int>(search.compared()));
}

INSTANTIATE_TEST_SUITE_P(Runs, JudgedSearches, testing::Range(0, NumRequests(kFewRequests)));

}  // namespace
}  // namespace pipelab
