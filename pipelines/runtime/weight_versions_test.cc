// Weight versions of one stage, driven by hand: what is refused, and when copies come and go.
#include "pipelines/runtime/weight_versions.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/test_layers.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/layer_stage.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Action VersionedAction(ActionKind kind, int micro_batch, int version) {
  return {kind, 0, micro_batch, 0, static_cast<int16_t>(version)};
}

// One stage that holds a whole model: 0F0 0F1 0B0 0S@1 0B1 0F2@1 0B2@1 0S@2.
class Versions : public testing::Test {
 protected:
  void SetUp() override {
    LayerStageOptions options;
    options.data = &data_;
    options.batch_tokens = 6;
    options.version_uses = {4, 2, 0};
    stage_ = LayerStage::Create(graph_, 0, static_cast<int>(graph_.layers.size()), backend_.get(),
                                options)
                 .value();
    base_ = arena_.current(MemoryKind::kParameter);
    for (const LayerSpec& layer : graph_.layers) {
      for (const ParameterSpec& p : layer.parameters) weights_ += Bytes(4) * p.size();
    }
  }

  absl::Status Forward(int micro_batch, int version) {
    return stage_->Forward(VersionedAction(ActionKind::kForward, micro_batch, version), {}, false)
        .status();
  }
  absl::Status Backward(int micro_batch, int version) {
    return stage_->Backward(VersionedAction(ActionKind::kBackward, micro_batch, version), {})
        .status();
  }
  absl::Status Step(int version) {
    return stage_->Step(VersionedAction(ActionKind::kStep, 0, version));
  }

  const ModelGraph graph_ = BuildGpt(SmallGpt(/*dropout=*/0, /*tied=*/false)).value();
  const RandomTokens data_{6, 11};
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(&arena_);
  std::unique_ptr<LayerStage> stage_;
  Bytes base_, weights_;  // of parameters, without and of one copy
};

TEST_F(Versions, CopiesLiveUntilTheirLastUse) {
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(stage_->training_step(), run);
    EXPECT_THAT(Forward(0, 0), IsOk());
    EXPECT_THAT(Forward(1, 0), IsOk());
    EXPECT_THAT(Backward(0, 0), IsOk());
    EXPECT_EQ(arena_.current(MemoryKind::kParameter), base_);
    EXPECT_THAT(Step(1), IsOk());
    EXPECT_EQ(arena_.current(MemoryKind::kParameter), base_ + weights_);
    EXPECT_THAT(Backward(1, 0), IsOk());
    EXPECT_EQ(arena_.current(MemoryKind::kParameter), base_);
    EXPECT_THAT(Forward(2, 1), IsOk());
    EXPECT_THAT(Backward(2, 1), IsOk());
    EXPECT_THAT(Step(2), IsOk());
    EXPECT_EQ(arena_.current(MemoryKind::kParameter), base_);
  }
}

TEST_F(Versions, PassesOutOfOrder) {
  const auto refused = [](const char* action, const char* why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr(action), HasSubstr(why)));
  };
  EXPECT_THAT(Forward(0, 1), refused("0F0@1", "not made yet; the newest is 0"));
  EXPECT_THAT(Forward(0, 0), IsOk());
  EXPECT_THAT(Step(2), refused("0S@2", "the next weight version is 1 of 2"));
  EXPECT_THAT(Backward(0, 0), IsOk());
  EXPECT_THAT(Step(1), IsOk());
  EXPECT_THAT(Step(2), refused("0S@2", "2 uses of weight version 0 are to come"));
  EXPECT_THAT(stage_->SetTrainingStep(4), refused("training step", "between steps"));
  EXPECT_THAT(Forward(1, 0), IsOk());
  EXPECT_THAT(Backward(1, 1), refused("0B1@1", "not of its forward's weight version 0"));
  EXPECT_THAT(Step(2), refused("0S@2", "micro-batch 1 is in flight"));
  EXPECT_THAT(Backward(1, 0), IsOk());
  EXPECT_THAT(Forward(2, 0), refused("0F2", "one use of weight version 0 too many: a run has 4"));
}

}  // namespace
}  // namespace pipelab
