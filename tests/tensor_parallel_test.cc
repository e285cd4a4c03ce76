// A small GPT whose layers are divided among tensor-parallel groups, for real: every grid P x T x D
// of 2 to 8 devices, several schemes and shardings. Losses and parameters as in serial training,
// and the bits of one group where only the pipeline differs; bytes sent and memory as predicted.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tests/tensor_parallel_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

std::vector<Grid> GridsOf(int devices) {
  std::vector<Grid> grids;
  for (int p = 1; p <= devices; ++p) {
    for (int t = 1; p * t <= devices; t *= 2) {  // divides the heads
      for (int d = 1; p * t * d <= devices; ++d) {
        if (p * t * d > 1) grids.push_back({p, t, d});
      }
    }
  }
  return grids;
}

// The requirement: every grid of 2 to 8 devices.
TEST_F(TensorParallelTest, EveryGridTrainsAsSerial) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  Known serial;
  for (const Grid& grid : GridsOf(8)) {
    samples_ = grid.data % 2 == 0 ? grid.data : 2 * grid.data;  // rows that the group divides
    TrainingOptions options = OptionsOf("1f1b", grid);
    for (Sharding sharding : {Sharding::kReplicated, Sharding::kFully}) {
      if (sharding == Sharding::kFully && grid.data == 1) continue;
      options.config.sharding = sharding;
      SCOPED_TRACE(absl::StrCat(Text(grid), " ", ShardingName(sharding)));
      ExpectTrainsAsSerial(graph, Train(graph, options), options,
                           SerialOnce(graph, options, &serial));
    }
  }
}

// Llama's blocks, and Mixtral's, on grids of each kind, with rows split by tokens too.
TEST_F(TensorParallelTest, LlamaTrainsAsSerial) {
  GptConfig config = DividedLlama(/*feed_forward=*/40);
  config.head_size = 4;
  config.kv_heads = config.heads;
  config.heads *= 2;
  for (const int64_t experts : {0, 4}) {
    config.query_key_norms = experts > 0;
    config.experts.experts = experts;
    config.experts.chosen = 2;
    config.experts.balance = 0.1;
    const ModelGraph graph = *BuildGpt(config);
    Known serial;
    for (const Grid& grid : {Grid{1, 4, 1}, Grid{2, 2, 2}, Grid{4, 2, 1}, Grid{2, 4, 1}}) {
      samples_ = 2;
      for (const bool sequence : {false, true}) {
        TrainingOptions options = OptionsOf("1f1b", grid);
        options.config.sequence_parallel = sequence;
        SCOPED_TRACE(
            absl::StrCat(Text(grid), ", experts ", experts, sequence ? ", rows by tokens" : ""));
        ExpectTrainsAsSerial(graph, Train(graph, options), options,
                             SerialOnce(graph, options, &serial));
      }
    }
  }
}

// Latent attention of DeepSeek-V3: narrow products whole, or of each device's rows.
TEST_F(TensorParallelTest, LatentAttentionTrainsAsSerial) {
  for (const int64_t query_rank : {0, 12}) {
    const ModelGraph graph = *BuildGpt(DividedLatent(query_rank));
    Known serial;
    for (const Grid& grid : {Grid{1, 4, 1}, Grid{2, 2, 2}}) {
      for (const bool sequence : {false, true}) {
        TrainingOptions options = OptionsOf("zb_h1", grid);
        options.config.sequence_parallel = sequence;
        SCOPED_TRACE(absl::StrCat(Text(grid), ", query rank ", query_rank,
                                  sequence ? ", rows by tokens" : ""));
        ExpectTrainsAsSerial(graph, Train(graph, options), options,
                             SerialOnce(graph, options, &serial));
      }
    }
  }
}

// Schemes, shardings, recomputation and ties on grids of 4 and 8 devices; rendezvous and overlap.
TEST_F(TensorParallelTest, EverySchemeTrainsAsSerial) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = *BuildGpt(DividedGpt(tied));
    Known known;
    for (const std::string scheme :
         {"gpipe", "1f1b", "interleaved", "breadth_first", "zb_h1", "zbv", "chimera"}) {
      for (const Grid& grid : {Grid{2, 2, 1}, Grid{2, 4, 1}, Grid{4, 2, 1}, Grid{2, 2, 2}}) {
        samples_ = 2;
        TrainingOptions options = OptionsOf(scheme, grid);
        const std::vector<double>& serial = SerialOnce(graph, options, &known);
        for (Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients,
                                  Sharding::kFully}) {
          if (sharding != Sharding::kReplicated && grid.data == 1) continue;
          const bool hard = sharding >= Sharding::kGradients;
          options.config.sharding = sharding;
          options.config.overlap_data = hard;
          options.rendezvous = hard || tied;
          options.config.recompute = RecomputeIf(tied && scheme == "gpipe");
          SCOPED_TRACE(
              absl::StrCat(scheme, " ", Text(grid), " ", ShardingName(sharding), " tied=", tied));
          ExpectTrainsAsSerial(graph, Train(graph, options), options, serial);
        }
      }
    }
  }
}

// A pipeline in front of groups changes no bit: with and without stages, one group's sums are the
// same.
TEST_F(TensorParallelTest, PipelinesOfGroupsHaveTheBitsOfOneGroup) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/true));
  for (int tensor : {2, 4}) {
    const GridResult one = Train(graph, OptionsOf("gpipe", {1, tensor, 1}));
    for (const std::string scheme : {"gpipe", "1f1b", "interleaved", "breadth_first", "zb_h1"}) {
      SCOPED_TRACE(absl::StrCat(scheme, " T=", tensor));
      const GridResult pipeline = Train(graph, OptionsOf(scheme, {2, tensor, 1}));
      EXPECT_EQ(pipeline.losses, one.losses);
      EXPECT_EQ(pipeline.parameters, one.parameters);
    }
  }
}

// Each member sends its part of a message, so that a group sends what one device would; with rows
// split by tokens these are the parts.
TEST_F(TensorParallelTest, MembersShareMessages) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  const auto sent = [&](const TrainingOptions& options) {
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    return (*training)->Step().value().trace;
  };
  for (const std::string scheme : {"1f1b", "zb_h1", "chimera", "terapipe"}) {
    const Trace whole = sent(OptionsOf(scheme, {4, 1, 1}));
    for (int tensor : {2, 8}) {
      for (const bool sequence : {false, true}) {
        if (sequence && scheme == "terapipe" && tensor == 8) continue;  // 4 slices of 8 tokens
        SCOPED_TRACE(absl::StrCat(scheme, " T=", tensor, " rows split: ", sequence));
        TrainingOptions options = OptionsOf(scheme, {4, tensor, 1});
        options.config.sequence_parallel = sequence;
        const Trace ranks = sent(options);
        for (size_t r = 0; r < ranks.devices.size(); ++r) {
          const DeviceTrace& one = whole.devices[r / tensor];
          EXPECT_EQ(ranks.devices[r].bytes_sent * tensor, one.bytes_sent) << "rank " << r;
          EXPECT_EQ(ranks.devices[r].messages_sent, one.messages_sent) << "rank " << r;
        }
      }
    }
  }
}

// Rows outside products split by tokens: less memory, and gradients of norms and biases summed over
// the group once a step. Where a data-parallel group shards these, a device has its share of the
// sums on average.
TEST_F(TensorParallelTest, SequenceParallelGroupsTrainAsSerial) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = *BuildGpt(DividedGpt(tied));
    Known known;
    for (const Grid& grid : {Grid{1, 2, 1}, Grid{1, 8, 1}, Grid{2, 2, 1}, Grid{4, 2, 1},
                             Grid{2, 2, 2}, Grid{1, 4, 2}}) {
      for (const std::string scheme : {"1f1b", "breadth_first", "zb_h1"}) {
        TrainingOptions options = OptionsOf(scheme, grid);
        options.config.sequence_parallel = true;
        if (tied) options.optimizer.clip_norm = 0.2;
        const std::vector<double>& serial = SerialOnce(graph, options, &known);
        for (Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully}) {
          if (sharding != Sharding::kReplicated && grid.data == 1) continue;
          options.config.sharding = sharding;
          SCOPED_TRACE(absl::StrCat(scheme, " ", Text(grid), " ", ShardingName(sharding)));
          ExpectTrainsAsSerial(graph, Train(graph, options), options, serial);
        }
      }
    }
  }
}

// The same for slices of the tokens, of each of which a device has the rows of 1/T: losses of a
// serial loop over the same slices, memory and messages as predicted, and the bits of one group
// without a pipeline.
TEST_F(TensorParallelTest, SlicesOfSplitRowsTrainAsSerial) {
  for (const ModelGraph& graph :
       {*BuildGpt(DividedGpt(/*tied=*/true)), *BuildGpt(DividedLlama(/*feed_forward=*/40))}) {
    for (const std::vector<int64_t>& slices :
         std::vector<std::vector<int64_t>>{{4, 4}, {2, 4, 2}}) {
      SerialOptions by_slice = SerialOf(OptionsOf("terapipe", {}));
      by_slice.slices = slices;
      const std::vector<double> serial = SerialLosses(graph, by_slice, kGridSteps);
      GridResult one;
      for (const Grid& grid : {Grid{1, 2, 1}, Grid{2, 2, 1}, Grid{4, 2, 1}}) {
        for (const std::string scheme : {"terapipe", "seq1f1b", "zb_seq1f1b"}) {
          SCOPED_TRACE(absl::StrCat(graph.layers[1].name, " ", scheme, " ", Text(grid), " ",
                                    slices.size(), " slices"));
          TrainingOptions options = OptionsOf(scheme, grid);
          options.config.sequence_parallel = true;
          options.slices = slices;
          options.config.slices = static_cast<int>(slices.size());
          const GridResult run = Train(graph, options);
          ExpectTrainsAsSerial(graph, run, options, serial);
          if (one.losses.empty()) one = run;
          EXPECT_EQ(run.losses, one.losses);
        }
      }
    }
  }
}

// Slices of equal lengths are cut where members have whole tokens of each.
TEST_F(TensorParallelTest, SlicesAreCutForSplitRows) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  TrainingOptions options = OptionsOf("seq1f1b", {2, 2, 1});
  options.config.sequence_parallel = true;
  options.config.slices = 3;
  auto training = PipelineTraining::Create(graph, *batches_, options);
  ASSERT_THAT(training, IsOk());
  EXPECT_EQ((*training)->slices(), std::vector<int64_t>({4, 2, 2}));
  const auto refused = [&](const char* what) {
    EXPECT_THAT(PipelineTraining::Create(graph, *batches_, options),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr(what)));
  };
  options.config.slices = 5;
  refused(
      "--slices=5: more token slices than a sample's 8 tokens give, of which sequence "
      "parallelism divides each among 2 devices; use at most 4");
  options.config.slices = 2;
  options.slices = {5, 3};
  refused(
      "token slices of 5,3 tokens: with sequence parallelism 2 devices divide each, so they "
      "must be multiples of 2");
}

}  // namespace
}  // namespace pipelab
