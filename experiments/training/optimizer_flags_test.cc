#include "experiments/training/optimizer_flags.h"

#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "experiments/flags/flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::StartsWith;

class OptimizerFlags : public testing::Test {
 protected:
  static void SetUpTestSuite() { RegisterOptimizerFlags(); }

  absl::StatusOr<OptimizerOptions> Read(const std::vector<std::string>& words,
                                        const OptimizerOptions& defaults = {}) {
    absl::FlagSaver saver;
    EXPECT_THAT(ParseFlags(words), IsOk());
    return OptimizerFromFlags(defaults, /*steps=*/50);
  }
};

TEST_F(OptimizerFlags, LeaveTheExperimentsOwnValues) {
  RmsPropOptions rmsprop;
  rmsprop.learning_rate = 0.5f;
  rmsprop.momentum = 0.25f;
  OptimizerOptions own = OptimizerOptions::RmsProp(rmsprop);
  own.clip_norm = 3;
  own.schedule.warmup_steps = 10;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const OptimizerOptions o, Read({}, own));
  EXPECT_EQ(OptimizerToString(o), OptimizerToString(own));
}

TEST_F(OptimizerFlags, SetWhatTheySay) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const OptimizerOptions o,
      Read({"--optimizer=sgd", "--learning_rate=0.5", "--momentum=0.25", "--weight_decay=0.125",
            "--warmup_steps=10", "--rate_decay=cosine", "--clip_norm=2"}));
  EXPECT_EQ(OptimizerToString(o),
            "sgd, rate 0.5, momentum 0.25, weight decay 0.125, warm-up of 10 steps, cosine over 50 "
            "steps, clipped to norm 2");
}

TEST_F(OptimizerFlags, RefuseWithNameAndValue) {
  const auto refused = [](const std::string& start) {
    return StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(start));
  };
  for (const char* rate : {"0", "-1e-3", "1e300", "1e-300", "nan", "inf", "fast"}) {
    const std::string flag = std::string("--learning_rate=") + rate;
    EXPECT_THAT(Read({flag}), refused("--learning_rate=")) << flag;
  }
  EXPECT_THAT(Read({"--optimizer=lamb"}), refused("--optimizer=lamb: no such optimizer"));
  EXPECT_THAT(Read({"--momentum=0.9"}),
              refused("--momentum=0.9: adam has none; sgd and rmsprop have"));
  EXPECT_THAT(Read({"--optimizer=sgd", "--momentum=1"}),
              refused("--momentum=1: must be at least 0 and below 1"));
  EXPECT_THAT(Read({"--warmup_steps=2.5"}), refused("--warmup_steps=2.5: must be a whole number"));
  EXPECT_THAT(Read({"--warmup_steps=50", "--rate_decay=cosine"}),
              refused("--warmup_steps=50: must be below the 50 steps of the training"));
  EXPECT_THAT(Read({"--rate_decay=linear"}), refused("--rate_decay=linear: no such decay"));
  EXPECT_THAT(Read({"--clip_norm=-1"}), refused("--clip_norm=-1: must be at least 0"));
}

}  // namespace
}  // namespace pipelab
