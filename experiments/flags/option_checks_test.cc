#include "experiments/flags/option_checks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::StartsWith;

GptConfig Small() {
  GptConfig config;
  config.layers = 2;
  config.hidden = 32;
  config.heads = 2;
  config.tokens = 16;
  config.vocabulary = 256;
  return config;
}

auto Refused(const char* start) {
  return StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(start));
}

TEST(OptionChecks, Ranges) {
  EXPECT_THAT(CheckRange("--steps", 1, 1, 5), IsOk());
  EXPECT_THAT(CheckRange("--steps", 5, 1, 5), IsOk());
  EXPECT_THAT(CheckRange("--steps", 0, 1, 5), Refused("--steps=0: must be from 1 to 5"));
  EXPECT_THAT(CheckRange("--steps", 6, 1, 5), Refused("--steps=6: "));
}

TEST(OptionChecks, LimitsNeitherOverflowNorPassForMemory) {
  GptConfig c = Small();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph small, BuildGpt(c));
  EXPECT_THAT(CheckMemory(small, 1), IsOk());
  c.layers = 1 << 10;
  c.hidden = 1 << 16;
  c.heads = 1 << 6;
  c.tokens = 1 << 20;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph largest, BuildGpt(c));
  EXPECT_THAT(CheckMemory(largest, kMostSamples), Refused("--micro_batch_size=65536: "));
}

}  // namespace
}  // namespace pipelab
