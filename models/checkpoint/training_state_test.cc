#include "models/checkpoint/training_state.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Two layers with a tie and running statistics. Costs and edges are not looked at.
ModelGraph Graph() {
  ModelGraph graph;
  graph.name = "net";
  graph.layers.resize(2);
  graph.layers[0].name = "a";
  graph.layers[0].kind = "fc";
  graph.layers[0].attributes = {{"heads", 4}};
  graph.layers[1].name = "z";
  graph.layers[1].kind = "squares";
  graph.layers[1].inputs = {0};
  graph.layers[0].parameters = {{"a/w", {2, 3}, InitKind::kNormal, 1, "shared"},
                                {"a/b", {3}, InitKind::kZeros, 0, ""}};
  graph.layers[0].statistics = {{"a/mean", {3}, InitKind::kZeros, 0, ""}};
  graph.layers[1].parameters = {{"z/w", {2, 3}, InitKind::kNormal, 1, "shared"}};
  return graph;
}

class TrainingStateTest : public testing::Test {
 protected:
  TrainingStateTest() {
    target_.graph = &graph_;
    target_.optimizer = "adam";
    target_.optimizer_state = {"m", "v"};
    target_.seed = 7;
    state_ = EmptyState(target_, /*step=*/12);
    float number = 0;
    for (const StateEntry& entry : StateEntries(graph_, target_.optimizer_state)) {
      std::vector<float> values(entry.spec->size());
      for (float& v : values) v = number++;
      state_.tensors[entry.key] = {entry.spec->shape, values};
    }
    state_.data = "0123456789abcdef";
    state_.settings = {{"data", "novels"}, {"batch", "16"}};
    state_.records = {{"losses", {4, 3, 2.5f}}, {"none", {}}};
  }

  std::string Path() const { return JoinPath(testing::TempDir(), "state.safetensors"); }

  const ModelGraph graph_ = Graph();
  StateTarget target_;
  TrainingState state_;
};

TEST_F(TrainingStateTest, HasEachValueOnce) {
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : state_.tensors) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"a/b/m", "a/b/v", "a/b/value", "a/mean/statistics",
                                            "shared/m", "shared/v", "shared/value"}));
  EXPECT_THAT(CheckState(state_, target_), IsOk());
}

TEST_F(TrainingStateTest, ComesBackFromAFile) {
  ASSERT_THAT(WriteTrainingState(Path(), state_), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState read, ReadTrainingState(Path()));
  EXPECT_EQ(read.model, "net");
  EXPECT_EQ(read.network, "a: fc of  heads=4\nz: squares of 0");
  EXPECT_EQ(read.data, "0123456789abcdef");
  EXPECT_EQ(read.optimizer, "adam");
  EXPECT_EQ(read.seed, 7);
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.optimizer_steps, 12);
  EXPECT_EQ(read.settings, state_.settings);
  EXPECT_EQ(read.records, state_.records);
  EXPECT_EQ(read.source, Path());
  ASSERT_EQ(read.tensors.size(), state_.tensors.size());
  for (const auto& [key, tensor] : state_.tensors) {
    EXPECT_EQ(read.tensors.at(key).shape, tensor.shape);
    EXPECT_TRUE(read.tensors.at(key).values == tensor.values);
  }
  EXPECT_THAT(CheckState(read, target_), IsOk());
}

// Files of version 0.5 say neither.
TEST_F(TrainingStateTest, OlderFilesAreTakenAtTheirWord) {
  state_.network.clear();
  state_.data.clear();
  EXPECT_THAT(CheckState(state_, target_), IsOk());
}

TEST_F(TrainingStateTest, SaysWhatDoesNotFit) {
  struct Bad {
    std::function<void(TrainingState*, StateTarget*)> change;
    std::string message;
  };
  const std::vector<Bad> all = {
      {[](TrainingState* s, StateTarget*) { s->model = "gpt"; },
       "of the model \"gpt\", not \"net\""},
      {[](TrainingState* s, StateTarget*) { s->tensors.at("a/b/value").shape = {4}; },
       "parameter \"a/b\" is [4] there and [3] in the model"},
      {[](TrainingState* s, StateTarget*) {
         s->tensors.at("shared/m").shape = {3, 2};
       },
       "parameter \"shared\" is [3,2] there and [2,3] in the model"},
      {[](TrainingState* s, StateTarget*) { s->tensors.erase("a/b/value"); },
       "has no parameter \"a/b\", which is [3] in the model"},
      {[](TrainingState* s, StateTarget*) { s->tensors.erase("a/mean/statistics"); },
       "has no parameter \"a/mean\""},
      {[](TrainingState* s, StateTarget*) { s->tensors.erase("a/b/v"); },
       "has no \"a/b/v\", which the optimizer adam keeps"},
      {[](TrainingState* s, StateTarget*) {
         s->tensors["c/value"] = {{1}, std::vector<float>{1}};
       },
       "has \"c/value\" of [1], which is no part of the training"},
      {[](TrainingState* s, StateTarget*) {
         s->tensors.at("a/b/value").values = std::vector<int32_t>{1, 2, 3};
       },
       "parameter \"a/b\": \"a/b/value\" is not of F32"},
      {[](TrainingState*, StateTarget* t) {
         t->optimizer = "sgd";
         t->optimizer_state = {"velocity"};
       },
       "trained by the optimizer adam, not sgd"},
      {[](TrainingState*, StateTarget* t) { t->seed = 8; }, "trained with seed 7, not 8"},
      {[](TrainingState* s, StateTarget*) { s->network = "a: fc of  heads=2\nz: squares of 0"; },
       "layer 0 is \"a: fc of  heads=2\" there and \"a: fc of  heads=4\" in the model"},
      {[](TrainingState* s, StateTarget*) { s->network = "a: fc of  heads=4\nz: loss of 0"; },
       "layer 1 is \"z: loss of 0\" there and \"z: squares of 0\" in the model"},
      {[](TrainingState* s, StateTarget*) { s->network = "a: fc of  heads=4"; },
       "layer 1 is none there and \"z: squares of 0\" in the model"},
      {[](TrainingState*, StateTarget* t) { t->updates_per_step = 4; },
       "12 optimizer steps in 12 training steps; this schedule takes 4 a step"},
  };
  for (const Bad& bad : all) {
    TrainingState state = state_;
    StateTarget target = target_;
    state.source = "x.safetensors";
    bad.change(&state, &target);
    EXPECT_THAT(CheckState(state, target), StatusIs(absl::StatusCode::kInvalidArgument,
                                                    HasSubstr("x.safetensors: " + bad.message)));
  }
}

TEST_F(TrainingStateTest, RefusesFilesThatChanged) {
  ASSERT_THAT(WriteTrainingState(Path(), state_), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Safetensors good, ReadSafetensors(Path()));
  const auto expect = [&](const Safetensors& file, const std::string& message) {
    ASSERT_THAT(WriteSafetensors(Path(), file), IsOk());
    EXPECT_THAT(ReadTrainingState(Path()),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(Path() + ": " + message)));
  };
  Safetensors file = good;
  std::get<std::vector<float>>(file.tensors.at("a/b/m").values)[1] += 1;
  expect(file, "damaged: its numbers are not those that were written");
  file = good;
  file.tensors.erase("a/b/m");
  expect(file, "damaged: its tensors are not those that were written");
  file = good;
  file.metadata["step"] = "twelve";
  expect(file, "metadata \"step\" is no number");
  file = good;
  file.metadata.erase("format");
  expect(file, "not a training state");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(Path()));
  ASSERT_THAT(WriteFileAtomically(Path(), bytes.substr(0, bytes.size() / 2)), IsOk());
  EXPECT_THAT(ReadTrainingState(Path()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(Path())));
}

}  // namespace
}  // namespace pipelab
