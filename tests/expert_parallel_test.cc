// A small mixture of experts whose experts are divided among devices, for real: grids P x T x D x
// E, schemes, shardings, shared experts, capacities, balancing losses, whole experts. Losses as in
// serial training; bytes sent and memory as predicted, to the byte, where loads are even.
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tests/tensor_parallel_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kExperts = 4;

GptConfig Mixture(int64_t chosen) {
  GptConfig config = DividedLlama(/*feed_forward=*/24);
  config.experts.experts = kExperts;
  config.experts.chosen = chosen;
  return config;
}

class ExpertParallelTest : public TensorParallelTest {
 protected:
  TrainingOptions OptionsOf(const std::string& scheme, Grid grid, int64_t experts) {
    samples_ = grid.data * 2;
    TrainingOptions options = TensorParallelTest::OptionsOf(scheme, grid);
    options.config.experts = experts;
    return options;
  }

  // `known`: of this graph.
  void ExpectTrains(const ModelGraph& graph, const TrainingOptions& options, Known* known) {
    SCOPED_TRACE(absl::StrCat(options.config.scheme, " ", ShardingName(options.config.sharding),
                              " E=", options.config.experts,
                              options.config.sequence_parallel ? " rows by tokens" : "",
                              options.config.whole_experts ? " whole experts" : ""));
    ExpectTrainsAsSerial(graph, Train(graph, options), options, SerialOnce(graph, options, known));
  }
};

// Every token takes all experts: loads are even, and everything is as predicted.
TEST_F(ExpertParallelTest, EvenLoadsAreAsPredicted) {
  for (const int64_t shared : {0, 2}) {
    GptConfig config = Mixture(kExperts);
    config.experts.shared = shared;
    const ModelGraph graph = *BuildGpt(config);
    Known known;
    for (const Grid& grid : {Grid{1, 1, 2}, Grid{1, 1, 4}, Grid{2, 1, 2}, Grid{2, 1, 4},
                             Grid{4, 1, 2}, Grid{1, 2, 2}, Grid{2, 2, 2}}) {
      for (const int64_t experts : {2, 4}) {
        if (grid.data % experts != 0) continue;
        for (const Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer,
                                        Sharding::kGradients, Sharding::kFully}) {
          SCOPED_TRACE(absl::StrCat(Text(grid), " shared ", shared));
          TrainingOptions options = OptionsOf("1f1b", grid, experts);
          options.config.sharding = sharding;
          options.config.sequence_parallel = grid.tensor > 1 && shared > 0;
          if (grid.pipeline == 2) options.optimizer.clip_norm = 0.2;
          ExpectTrains(graph, options, &known);
        }
      }
    }
  }
}

// Tokens choose: no capacity; one, with a balancing loss; shared experts and sigmoids.
TEST_F(ExpertParallelTest, RealLoadsTrainAsSerial) {
  even_loads_ = false;
  for (const int kind : {0, 1, 2}) {
    GptConfig config = Mixture(/*chosen=*/2);
    if (kind == 1) {
      config.experts.capacity_factor = 1;
      config.experts.balance = 0.1;
    } else if (kind == 2) {
      config.experts.shared = 1;
      config.experts.sigmoid = true;
    }
    const ModelGraph graph = *BuildGpt(config);
    Known known;
    for (const Grid& grid : {Grid{1, 1, 2}, Grid{2, 1, 2}, Grid{4, 1, 2}, Grid{1, 1, 4},
                             Grid{2, 2, 2}, Grid{1, 1, 8}}) {
      for (const int64_t experts : {2, 4}) {
        if (grid.data % experts != 0) continue;
        SCOPED_TRACE(absl::StrCat(Text(grid), " kind ", kind));
        TrainingOptions options = OptionsOf("1f1b", grid, experts);
        options.config.sequence_parallel = grid.tensor > 1 && kind == 2;
        options.rendezvous = kind == 1;
        ExpectTrains(graph, options, &known);
      }
    }
  }
}

TEST_F(ExpertParallelTest, SchemesTrainAsSerial) {
  for (const bool even : {true, false}) {
    even_loads_ = even;
    GptConfig config = Mixture(even ? kExperts : 2);
    config.experts.shared = even ? 0 : 1;
    const ModelGraph graph = *BuildGpt(config);
    Known known;
    for (const std::string scheme :
         {"gpipe", "interleaved", "breadth_first", "zb_h1", "zbv", "chimera"}) {
      for (const Sharding sharding :
           {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
        TrainingOptions options = OptionsOf(scheme, {2, 1, 4}, 2);
        options.config.sharding = sharding;
        options.config.overlap_data = ShardsGradients(sharding);
        options.config.recompute =
            RecomputeIf(scheme == "gpipe" || (even && scheme == "breadth_first"));
        if (!even) options.optimizer.clip_norm = 0.2;
        ExpectTrains(graph, options, &known);
      }
    }
  }
}

// Experts' gradients are summed between the sets, too.
TEST_F(ExpertParallelTest, SetsThatShardTrainAsSerial) {
  for (const bool even : {true, false}) {
    even_loads_ = even;
    const ModelGraph graph = *BuildGpt(Mixture(even ? kExperts : 2));
    Known known;
    for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
      for (const auto& [pipeline, data, shards] :
           {std::make_tuple(1, 4, 2), {2, 4, 2}, {1, 8, 4}, {1, 8, 2}}) {
        SCOPED_TRACE(absl::StrCat("P=", pipeline, " D=", data, " shards=", shards));
        TrainingOptions options = OptionsOf("1f1b", {pipeline, 1, data}, 2);
        options.config.sharding = sharding;
        options.config.shards = shards;
        options.optimizer.clip_norm = 0.2;
        ExpectTrains(graph, options, &known);
      }
    }
  }
  const ModelGraph graph = *BuildGpt(Mixture(kExperts));
  TrainingOptions options = OptionsOf("1f1b", {1, 1, 4}, 4);
  options.config.sharding = Sharding::kFully;
  options.config.shards = 2;
  EXPECT_THAT(PipelineTraining::Create(graph, *batches_, options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "shards=2: must be a multiple of the 4 copies with different experts"));
}

// Ranks of a tensor-parallel group have different experts, and send them their own tokens' rows.
TEST_F(ExpertParallelTest, WholeExpertsTrainAsSerial) {
  for (const bool even : {true, false}) {
    for (const int64_t shared : {0, 1}) {
      even_loads_ = even;
      GptConfig config = Mixture(even ? kExperts : 1);
      config.experts.shared = shared;
      const ModelGraph graph = *BuildGpt(config);
      Known known;
      for (const Grid& grid : {Grid{1, 2, 1}, Grid{2, 2, 1}, Grid{1, 2, 2}, Grid{2, 2, 2}}) {
        for (const int64_t experts : {2, 4}) {
          if (grid.tensor * grid.data % experts != 0) continue;
          for (const Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer}) {
            if (sharding != Sharding::kReplicated && grid.data == 1) continue;
            SCOPED_TRACE(absl::StrCat(Text(grid), " shared ", shared));
            TrainingOptions options = OptionsOf("1f1b", grid, experts);
            options.config.sequence_parallel = options.config.whole_experts = true;
            options.config.sharding = sharding;
            if (shared > 0) options.optimizer.clip_norm = 0.2;
            ExpectTrains(graph, options, &known);
          }
        }
      }
    }
  }
}

TEST_F(ExpertParallelTest, WithPartsOfTheTokens) {
  const ModelGraph graph = *BuildGpt(Mixture(kExperts));
  Known known;
  for (const Grid& grid : {Grid{1, 1, 1, 2}, Grid{1, 1, 2, 2}, Grid{2, 1, 2, 2}}) {
    for (const int64_t experts : {2, 4}) {
      if (grid.data * grid.context % experts != 0) continue;
      SCOPED_TRACE(Text(grid));
      ExpectTrains(graph, OptionsOf("1f1b", grid, experts), &known);
    }
  }
}

// The state is of whole parameters: it goes on over other numbers of devices, with equal values.
TEST_F(ExpertParallelTest, ResumesWithOtherExperts) {
  GptConfig config = Mixture(/*chosen=*/2);
  config.experts.shared = 1;
  const ModelGraph graph = *BuildGpt(config);
  const auto training_of = [&](int64_t experts, Sharding sharding) {
    TrainingOptions options = OptionsOf("1f1b", {2, 1, 4}, experts);
    options.config.sharding = sharding;
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    return *std::move(training);
  };
  const auto first = training_of(2, Sharding::kReplicated);
  std::vector<double> losses;
  for (int i = 0; i < 2; ++i) losses.push_back(first->Step()->loss);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, first->State());
  losses.push_back(first->Step()->loss);
  for (const int64_t experts : {1, 2, 4}) {
    for (const Sharding sharding :
         {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully}) {
      SCOPED_TRACE(absl::StrCat("E=", experts, " ", ShardingName(sharding)));
      const auto next = training_of(experts, sharding);
      ASSERT_THAT(next->SetState(state), IsOk());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState same, next->State());
      ASSERT_EQ(same.tensors.size(), state.tensors.size());
      for (const auto& [name, tensor] : state.tensors) {
        EXPECT_EQ(same.tensors.at(name).values, tensor.values) << name;
      }
      EXPECT_NEAR(next->Step()->loss, losses[2], 1e-5);
    }
  }
}

// Weights start as those of one device; and every token's choices are counted once.
TEST_F(ExpertParallelTest, StartsAndCountsAsOneDevice) {
  GptConfig config = Mixture(/*chosen=*/2);
  config.experts.capacity_factor = 1;
  const ModelGraph graph = *BuildGpt(config);
  std::vector<float> value;
  TrainingStep one;
  for (const int64_t experts : {1, 2, 4}) {
    auto training =
        PipelineTraining::Create(graph, *batches_, OptionsOf("1f1b", {1, 1, 4}, experts));
    ASSERT_THAT(training, IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> w1,
                                 (*training)->ParameterValue("block1/experts/w1"));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, (*training)->Step());
    EXPECT_GT(step.dropped_choices, 0);
    EXPECT_GT(step.largest_load, 1);
    EXPECT_LT(step.largest_load, kExperts);
    if (experts == 1) {
      value = w1;
      one = step;
    }
    EXPECT_EQ(w1, value);
    EXPECT_EQ(step.dropped_choices, one.dropped_choices);
    EXPECT_EQ(step.largest_load, one.largest_load);
  }
}

TEST_F(ExpertParallelTest, Refusals) {
  GptConfig config = Mixture(/*chosen=*/2);
  const ModelGraph graph = *BuildGpt(config);
  config.experts.capacity_factor = 1;
  const ModelGraph with_capacity = *BuildGpt(config);
  const auto refused = [&](const ModelGraph& of, const TrainingOptions& options,
                           const std::string& why) {
    EXPECT_THAT(PipelineTraining::Create(of, *batches_, options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused(graph, OptionsOf("1f1b", {1, 1, 3}, 3),
          "E=3: must divide the 4 experts of layer \"block0/experts\"");
  refused(graph, OptionsOf("1f1b", {2, 1, 2}, 4), "E=4: must divide the 2 devices of C x D");
  refused(*BuildGpt(DividedGpt(/*tied=*/false)), OptionsOf("1f1b", {1, 1, 2}, 2),
          "has no layer with experts");
  TrainingOptions whole = OptionsOf("1f1b", {1, 2, 1}, 2);
  whole.config.sequence_parallel = whole.config.whole_experts = true;
  refused(
      with_capacity, whole,
      "whole_experts: layer \"block0/experts\" has a capacity for each sample, whose tokens T=2 "
      "ranks divide; leave out whole_experts");
}

}  // namespace
}  // namespace pipelab
