// A small GPT whose samples' tokens are divided among devices, for real: grids P x T x D x C,
// several schemes, shardings, recomputation, causal masks and none. Losses as in serial training;
// bytes sent and memory as predicted, to the byte.
#include "models/graph/context_parallel.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/batch_source.h"
#include "models/data/random_batches.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/graph/context_part.h"
#include "models/graph/tensor_parallel.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/step/step_config.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tests/tensor_parallel_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

class ContextParallelTest : public TensorParallelTest {
 protected:
  // `known`: of this graph.
  void ExpectTrains(const ModelGraph& graph, const TrainingOptions& options, Known* known) {
    ExpectTrains(graph, *batches_, options, SerialOnce(graph, options, known));
  }
  void ExpectTrains(const ModelGraph& graph, const BatchSource& batches,
                    const TrainingOptions& options) {
    SerialOptions serial = SerialOf(options);
    serial.data = &batches;
    ExpectTrains(graph, batches, options, SerialLosses(graph, serial, kGridSteps));
  }

 private:
  // Keys and values gathered, and round a ring; and heads exchanged, where these divide.
  void ExpectTrains(const ModelGraph& graph, const BatchSource& batches, TrainingOptions options,
                    const std::vector<double>& serial) {
    for (const ContextExchange exchange :
         {ContextExchange::kGather, ContextExchange::kRing, ContextExchange::kHeads}) {
      SCOPED_TRACE(absl::StrCat(options.config.scheme, " ", ShardingName(options.config.sharding),
                                options.config.sequence_parallel ? " rows by tokens, " : ", ",
                                ContextExchangeName(exchange)));
      options.config.context_exchange = exchange;
      TensorParallel split = {options.config.tensor, false, options.config.context};
      split.exchange = exchange;
      if (exchange == ContextExchange::kHeads && !CheckContextParallel(graph, split).ok()) {
        EXPECT_THAT(PipelineTraining::Create(graph, batches, options),
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             HasSubstr("with context_exchange=heads it must divide the ")));
        continue;
      }
      ExpectTrainsAsSerial(graph, Train(graph, batches, options), options, serial);
    }
  }
};

// Grids of 2 to 8 devices, weights whole and sharded over all devices that have the same.
TEST_F(ContextParallelTest, GridsTrainAsSerial) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  Known known;
  for (const Grid& grid : {Grid{1, 1, 1, 2}, Grid{1, 1, 1, 4}, Grid{2, 1, 1, 2}, Grid{2, 1, 1, 4},
                           Grid{4, 1, 1, 2}, Grid{1, 2, 1, 2}, Grid{1, 1, 2, 2}, Grid{2, 1, 2, 2},
                           Grid{2, 2, 1, 2}, Grid{1, 2, 1, 4}, Grid{1, 2, 2, 2}}) {
    SCOPED_TRACE(Text(grid));
    samples_ = 2;
    for (Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully}) {
      TrainingOptions options = OptionsOf("1f1b", grid);
      options.config.sharding = sharding;
      ExpectTrains(graph, options, &known);
    }
  }
}

// Rows of a device's tokens that its group splits again.
TEST_F(ContextParallelTest, WithSequenceParallelGroups) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/true));
  Known known;
  for (const Grid& grid :
       {Grid{1, 2, 1, 2}, Grid{2, 2, 1, 2}, Grid{1, 4, 1, 2}, Grid{1, 2, 1, 4}, Grid{1, 2, 2, 2}}) {
    SCOPED_TRACE(Text(grid));
    TrainingOptions options = OptionsOf("1f1b", grid);
    options.config.sequence_parallel = true;
    options.optimizer.clip_norm = 0.2;
    ExpectTrains(graph, options, &known);
  }
}

// Rotary positions, keys that queries share, no biases, norms of q and k.
TEST_F(ContextParallelTest, LlamaTrainsAsSerial) {
  GptConfig config = DividedLlama(/*feed_forward=*/40);
  config.head_size = 4;
  config.kv_heads = 2;
  for (const Grid& grid : {Grid{1, 1, 1, 4}, Grid{2, 2, 1, 2}, Grid{4, 1, 1, 2}}) {
    for (const bool sequence : {false, true}) {
      if (sequence && grid.tensor == 1) continue;
      config.query_key_norms = grid.pipeline != 4;
      if (grid.tensor == 1) config.windows = {config.tokens / 2 - 1, 0};
      const ModelGraph graph = *BuildGpt(config);
      Known known;
      SCOPED_TRACE(Text(grid));
      TrainingOptions options = OptionsOf("zb_h1", grid);
      options.config.sequence_parallel = sequence;
      ExpectTrains(graph, options, &known);
    }
  }
}

// Windows that end within a chunk of 2, 4 or 8 tokens or some chunks before, where devices are so
// many that keys go some places each way alone: C = 8, windows of 3 to 6 tokens.
TEST_F(ContextParallelTest, WindowsTrainAsSerial) {
  GptConfig config = LlamaConfig(/*layers=*/2, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/24,
                                 /*tokens=*/32, (SmallText()->vocabulary() + 7) / 8 * 8);
  config.kv_heads = 2;
  parts_differ_ = true;
  const TextData text = *MakeTextData(SyntheticCorpus(/*bytes=*/20000, /*seed=*/3), config.tokens,
                                      /*seed=*/5);
  for (const int64_t window : {3, 4, 6, 13}) {
    config.windows = {window};
    const ModelGraph graph = *BuildGpt(config);
    for (const Grid& grid : {Grid{2, 1, 1, 2}, Grid{2, 1, 1, 4}, Grid{1, 1, 1, 8}}) {
      SCOPED_TRACE(absl::StrCat(Text(grid), " window ", window));
      ExpectTrains(graph, *text.train, OptionsOf(grid.pipeline == 1 ? "1f1b" : "zb_h1", grid));
    }
  }
}

// Latent attention of DeepSeek-V3.
TEST_F(ContextParallelTest, LatentAttentionTrainsAsSerial) {
  for (const int64_t query_rank : {0, 12}) {
    const ModelGraph graph = *BuildGpt(DividedLatent(query_rank));
    Known known;
    for (const Grid& grid : {Grid{1, 1, 1, 2}, Grid{2, 1, 1, 4}, Grid{2, 2, 1, 2}}) {
      for (const bool sequence : {false, true}) {
        if (sequence && grid.tensor == 1) continue;
        SCOPED_TRACE(absl::StrCat(Text(grid), ", query rank ", query_rank));
        TrainingOptions options = OptionsOf(query_rank == 0 ? "1f1b" : "zb_h1", grid);
        options.config.sequence_parallel = sequence;
        ExpectTrains(graph, options, &known);
      }
    }
  }
}

TEST_F(ContextParallelTest, SchemesAndRecomputation) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = *BuildGpt(DividedGpt(tied));
    Known known;
    for (const std::string scheme :
         {"gpipe", "1f1b", "interleaved", "breadth_first", "zb_h1", "zbv", "chimera"}) {
      for (const Sharding sharding : {Sharding::kReplicated, Sharding::kGradients}) {
        TrainingOptions options = OptionsOf(scheme, {2, 1, 2, 2});
        options.config.sharding = sharding;
        options.config.overlap_data = sharding != Sharding::kReplicated;
        options.rendezvous = tied;
        const bool whole = scheme == "gpipe" || (tied && scheme == "1f1b");
        options.config.recompute = RecomputeIf(whole);
        if (scheme == "breadth_first") {
          options.config.recompute = Recompute::kBlocks;
        }
        ExpectTrains(graph, options, &known);
      }
    }
  }
}

// Without a causal mask each device has one part, of padded samples too.
TEST_F(ContextParallelTest, BertTrainsAsSerial) {
  BertConfig config;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 4;
  config.feed_forward = 32;
  config.tokens = 12;
  config.vocabulary = 40;
  const ModelGraph graph = *BuildBert(config);
  for (const Grid& grid : {Grid{1, 1, 1, 3}, Grid{2, 1, 1, 2}, Grid{1, 2, 1, 4}}) {
    SCOPED_TRACE(Text(grid));
    TrainingOptions options = OptionsOf("1f1b", grid);
    const RandomBatches batches(FieldsOf(graph), options.samples() * kGridMicroBatches,
                                /*seed=*/3);
    ExpectTrains(graph, batches, options);
  }
}

// A device keeps its tokens' activations alone; its weights are as before.
TEST_F(ContextParallelTest, ActivationsAreDivided) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  const auto step = [&](int context) {
    auto training =
        PipelineTraining::Create(graph, *batches_, OptionsOf("gpipe", {2, 1, 1, context}));
    EXPECT_THAT(training, IsOk());
    return (*training)->Step().value().trace.devices[0];
  };
  const DeviceTrace whole = step(1), half = step(2);
  EXPECT_LT(half.peak_activation.value(), whole.peak_activation.value() * 0.56);
  EXPECT_EQ(half.peak_state, whole.peak_state);
  EXPECT_EQ(half.bytes_sent * 2, whole.bytes_sent);
}

TEST_F(ContextParallelTest, Refusals) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  const auto refused = [&](const TrainingOptions& options, const std::string& why) {
    EXPECT_THAT(PipelineTraining::Create(graph, *batches_, options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  refused(OptionsOf("1f1b", {1, 1, 1, 3}), "C=3: twice it must divide the 8 tokens");
  TrainingOptions options = OptionsOf("1f1b", {2, 1, 1, 1});
  SchemeParams uneven{3, 4};
  uneven.stages = StageGraph::Chain(2);
  uneven.devices_of_stage = {{0, 1}, {2}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(options.schedule, MakeSchedule("graph", uneven));
  options.config.context = 2;
  refused(options, "--context_parallel=2: stage 1 has 2 devices; each stage must have as many");
  refused(OptionsOf("terapipe", {2, 1, 1, 2}), "--context_parallel: not with token slices");
  options = OptionsOf("1f1b", {1, 4, 1, 4});
  options.config.context_exchange = ContextExchange::kHeads;
  refused(options,
          "C=4: with context_exchange=heads it must divide the 2 heads of layer "
          "\"block0/attention\" that a device has of 8 in a group of 4; the nearest "
          "C that does is 2");
}

}  // namespace
}  // namespace pipelab
