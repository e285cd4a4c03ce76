#include "experiments/commands/step_input.h"

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(std::string, cluster);
ABSL_DECLARE_FLAG(std::string, kernels);
ABSL_DECLARE_FLAG(std::string, launches);

namespace pipelab {
namespace {

using testing::HasSubstr;

absl::StatusOr<Nanoseconds> StepTime(const char* launches) {
  absl::SetFlag(&FLAGS_launches, launches);
  const StepConfig config = ParseStepConfig("config", "1f1b:P=2,M=4").value();
  const auto on = LoadModelOnCluster(config);
  if (!on.ok()) return on.status();
  return PredictStep((*on)->step(), config)->step_time;
}

// Kernels of a small model take less than the host's time for each.
TEST(Launches, GraphsTakeNoTimeOfTheHost) {
  absl::SetFlag(&FLAGS_model, "qwen3-0.6b@256");
  absl::SetFlag(&FLAGS_cluster, "dgx-h100");
  absl::SetFlag(&FLAGS_kernels, "megatron");
  EXPECT_LT(*StepTime("graphs"), *StepTime("eager"));
  EXPECT_THAT(StepTime("lazy").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--launches=lazy: must be eager or graphs")));
}

// A file is at fault, a published model is not.
TEST(StepInput, NamesTheFileOfTimesThatAreTooLong) {
  StepConfig of;
  of.model = "mine.json";
  EXPECT_THAT(
      FaultOfModel(TooLong("a stage takes long"), of),
      StatusIs(absl::StatusCode::kFailedPrecondition, "--model=mine.json: a stage takes long"));
  const absl::Status other = absl::InvalidArgumentError("P=9");
  EXPECT_EQ(FaultOfModel(other, of), other);
  of.model = "gpt-small";
  EXPECT_TRUE(absl::IsInvalidArgument(FaultOfModel(TooLong("a stage takes long"), of)));
}

// Whatever its attention, a Transformer is a language model.
TEST(Kernels, MegatronsAreThoseOfLatentAttentionToo) {
  absl::SetFlag(&FLAGS_model, "moonlight-16b-a3b");
  absl::SetFlag(&FLAGS_cluster, "dgx-h100");
  absl::SetFlag(&FLAGS_kernels, "megatron");
  EXPECT_THAT(StepTime("eager"), IsOk());
}

}  // namespace
}  // namespace pipelab
