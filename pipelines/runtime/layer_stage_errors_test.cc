// What a stage of layers refuses, and in which words.
#include <functional>
#include <utility>

#include "glog/logging.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "models/layers/test_layers.h"
#include "pipelines/runtime/layer_stage.h"
#include "tests/support/layer_pipeline.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class LayerStageErrors : public testing::Test {
 protected:
  LayerStageErrors() : backend_(MakeReferenceBackend(&arena_)) {
    options_.data = &data_;
    options_.batch_tokens = 12;
  }

  std::unique_ptr<LayerStage> MakeStage(int begin, int end) {
    auto stage = LayerStage::Create(graph_, begin, end, backend_.get(), options_);
    CHECK(stage.ok()) << stage.status();
    return *std::move(stage);
  }
  Tensor Rows(int64_t m) { return RandomTensor(backend_.get(), {m, 16}, "x", 1); }
  void ExpectCreateFails(int begin, int end, absl::StatusCode code, const char* what) {
    EXPECT_THAT(LayerStage::Create(graph_, begin, end, backend_.get(), options_),
                StatusIs(code, HasSubstr(what)));
  }

  const RandomTokens data_{6, 11};
  ModelGraph graph_ = *BuildGpt(SmallGpt(0, false));
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  LayerStageOptions options_;
};

TEST_F(LayerStageErrors, PassesOutOfOrder) {
  const auto stage = MakeStage(1, 3);
  const auto refused = [](const char* action, const char* why) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr(action), HasSubstr(why)));
  };
  const auto backward = [&](ActionKind kind, int mb) {
    return stage->Backward(MakeAction(kind, 2, mb), {Rows(6)}).status();
  };
  EXPECT_THAT(backward(ActionKind::kBackward, 3), refused("2B3", "no forward"));
  EXPECT_THAT(stage->Recompute(MakeAction(ActionKind::kRecompute, 2, 3)),
              refused("2R3", "no forward"));
  EXPECT_THAT(stage->Forward(MakeAction(ActionKind::kForward, 2, 3), {Rows(6)}, true), IsOk());
  EXPECT_THAT(stage->Forward(MakeAction(ActionKind::kForward, 2, 3), {Rows(6)}, false),
              refused("2F3", "again"));
  EXPECT_THAT(backward(ActionKind::kBackwardInput, 3), refused("2I3", "recompute"));
  EXPECT_THAT(stage->Recompute(MakeAction(ActionKind::kRecompute, 2, 3)), IsOk());
  EXPECT_THAT(stage->Recompute(MakeAction(ActionKind::kRecompute, 2, 3)),
              refused("2R3", "not dropped"));
  EXPECT_THAT(stage->BackwardWeight(MakeAction(ActionKind::kBackwardWeight, 2, 3)),
              refused("2W3", "before the input gradient"));
  EXPECT_THAT(backward(ActionKind::kBackwardInput, 3), IsOk());
  EXPECT_THAT(backward(ActionKind::kBackwardInput, 3), refused("2I3", "only the weight gradient"));
  EXPECT_THAT(stage->Step(MakeAction(ActionKind::kStep, 2, 0)),
              refused("2S", "micro-batch 3 is in flight"));
  EXPECT_THAT(stage->SetTrainingStep(4), refused("training step", "between steps"));
  EXPECT_THAT(stage->BackwardWeight(MakeAction(ActionKind::kBackwardWeight, 2, 3)), IsOk());
  EXPECT_THAT(stage->BackwardWeight(MakeAction(ActionKind::kBackwardWeight, 2, 3)),
              refused("2W3", "no forward"));
  EXPECT_THAT(stage->Step(MakeAction(ActionKind::kStep, 2, 0)), IsOk());
  EXPECT_EQ(stage->training_step(), 1);
  EXPECT_EQ(arena_.current_transient(), Bytes(0));
}

TEST_F(LayerStageErrors, TensorsThatDoNotFit) {
  const auto stage = MakeStage(1, 3);
  const auto bad = [](const char* what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  const Action forward = MakeAction(ActionKind::kForward, 1, 0);
  EXPECT_THAT(stage->Forward(forward, {}, false), bad("1F0 takes 1 inputs, not 0"));
  EXPECT_THAT(stage->Forward(forward, {Rows(7)}, false),
              bad("1F0 takes inputs of [6, 16] for \"embedding\", not [7, 16]"));
  EXPECT_EQ(stage->in_flight(), 0);
  EXPECT_THAT(stage->Forward(forward, {Rows(6)}, false), IsOk());
  EXPECT_THAT(stage->Backward(MakeAction(ActionKind::kBackward, 1, 0), {}),
              bad("1B0 takes 1 output gradients"));
  EXPECT_THAT(stage->Backward(MakeAction(ActionKind::kForward, 1, 0), {Rows(6)}),
              bad("another kind"));
}

TEST_F(LayerStageErrors, SlicesAndVersions) {
  const auto stage = MakeStage(1, 3);
  Action a = MakeAction(ActionKind::kForward, 1, 0);
  a.slice = 1;
  EXPECT_THAT(stage->Forward(a, {Rows(6)}, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "1F0.1: this stage was made for 1 token slice a micro-batch"));
  a.slice = 0;
  a.version = 1;
  EXPECT_THAT(stage->Forward(a, {Rows(6)}, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version")));
}

TEST_F(LayerStageErrors, SlicesOutOfOrder) {
  options_.slices = {4, 2};
  const auto stage = MakeStage(1, 3);
  const auto action = [](ActionKind kind, int slice) {
    Action a = MakeAction(kind, 1, 0);
    a.slice = static_cast<int16_t>(slice);
    return a;
  };
  const auto refused = [](const char* what) {
    return StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(what));
  };
  EXPECT_EQ(stage->InputSpec(0, 0).shape, (Shape{4, 16}));
  EXPECT_EQ(stage->OutputSpec(0, 1).shape, (Shape{2, 16}));
  EXPECT_THAT(stage->Forward(action(ActionKind::kForward, 1), {Rows(2)}, false),
              refused("1F0.1 comes before the slice of its micro-batch that it attends to"));
  EXPECT_THAT(stage->Forward(action(ActionKind::kForward, 0), {Rows(2)}, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs of [4, 16]")));
  EXPECT_THAT(stage->Forward(action(ActionKind::kForward, 0), {Rows(4)}, false), IsOk());
  EXPECT_THAT(stage->Forward(action(ActionKind::kForward, 0), {Rows(4)}, false), refused("again"));
  EXPECT_THAT(stage->Forward(action(ActionKind::kForward, 1), {Rows(2)}, false), IsOk());
  EXPECT_THAT(stage->Backward(action(ActionKind::kBackward, 0), {Rows(4)}),
              refused("1B0 comes before the backward of the next slice"));
  EXPECT_THAT(stage->Backward(action(ActionKind::kBackwardInput, 1), {Rows(2)}), IsOk());
  EXPECT_THAT(stage->Backward(action(ActionKind::kBackward, 0), {Rows(4)}), IsOk());
  EXPECT_EQ(stage->in_flight(), 1);
  EXPECT_THAT(stage->BackwardWeight(action(ActionKind::kBackwardWeight, 1)), IsOk());
  EXPECT_EQ(stage->in_flight(), 0);
  EXPECT_EQ(arena_.current_transient(), Bytes(0));
  EXPECT_THAT(stage->Forward(action(ActionKind::kForward, 2), {Rows(2)}, false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("made for 2 token slices")));
}

// The norm comes with the sums of all copies, once a step.
TEST_F(LayerStageErrors, ClippingNeedsTheGlobalNorm) {
  options_.optimizer.clip_norm = 1;
  const auto stage = MakeStage(1, 3);
  const Action step = MakeAction(ActionKind::kStep, 1, 0);
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("1S comes before the global norm of the gradients is known"));
  EXPECT_THAT(stage->Step(step), refused);
  NormShare share;
  share.own = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor squares, stage->BeginNorm(share));
  for (float term : squares.f32()) EXPECT_EQ(term, 0);  // no gradients yet
  squares.f32()[0] = 9;                                 // another stage's
  squares.f32()[1] = 16;
  EXPECT_THAT(stage->EndNorm(squares), IsOk());
  EXPECT_EQ(stage->gradient_norm(), 5);
  EXPECT_THAT(stage->Step(step), IsOk());
  EXPECT_THAT(stage->Step(step), refused);
  options_.optimizer.clip_norm = -1;
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "clip_norm=-1: must be");
}

TEST_F(LayerStageErrors, SizesOfTheStage) {
  ExpectCreateFails(2, 2, absl::StatusCode::kInvalidArgument, "[2, 2) of 6");
  ExpectCreateFails(0, 7, absl::StatusCode::kInvalidArgument, "[0, 7) of 6");
  options_.slices = {4, 3};
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "token slices of 4,3 tokens");
  options_.slices = {3, 3};
  const auto slice_costs = std::exchange(graph_.layers[5].slice_costs, nullptr);
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "a gpt_head takes whole samples");
  graph_.layers[5].slice_costs = slice_costs;
  options_.slices.clear();
  options_.micro_batch_size = 3;
  options_.data_parallel_size = 2;
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "3 samples do not divide among 2");
  options_.member = 2;
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "member 2 of a group of 2");
  options_.data_parallel_size = 1;
  options_.member = 0;
  options_.batch_tokens = 0;
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "batch_tokens = 0");
  options_.batch_tokens = 12;
  options_.data = nullptr;
  ExpectCreateFails(0, 2, absl::StatusCode::kInvalidArgument, "no data source");
  EXPECT_THAT(LayerStage::Create(graph_, 1, 3, backend_.get(), options_), IsOk());
}

TEST_F(LayerStageErrors, GraphsAndPartitionsThatDoNotFit) {
  const ModelPartition partition = *MakeRangePartition(graph_, {0, 2});
  EXPECT_THAT(
      LayerStage::Create(graph_, partition, 2, backend_.get(), options_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stage 2 of a partition into 2")));
  graph_.layers.resize(3);
  ExpectCreateFails(0, 3, absl::StatusCode::kInvalidArgument,
                    "\"block0/mlp\": nothing takes its output");
}

}  // namespace
}  // namespace pipelab
