// A small GPT whose devices are spread over the processes of mpirun: every scheme of the catalogue,
// sharded, in tensor-parallel groups, clipped. In all processes the losses have the bits of devices
// in one process, and process 0 has every device's memory, traffic and spans.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/mpi_test_main.h"
#include "kernels/comm/transport.h"
#include "models/zoo/gpt.h"
#include "pipelines/fill/fill_evaluation.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tests/spread_checkpoints.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int kMpiSteps = 3;
constexpr absl::Duration kLong = absl::Minutes(2);

ProcessGroup& Group() { return *TestTransport().processes(); }

class MpiTrainingTest : public testing::Test {
 protected:
  MpiTrainingTest() : batches_(SmallText()), graph_(SmallGpt(/*tied=*/false)) {}

  struct Trained {
    Program program;
    std::vector<TrainingStep> steps;
  };
  Trained Train(const TrainingOptions& options) {
    Trained trained;
    auto training = PipelineTraining::Create(graph_, *batches_, options);
    EXPECT_THAT(training, IsOk());
    for (int i = 0; training.ok() && i < kMpiSteps; ++i) {
      auto step = (*training)->Step();
      EXPECT_THAT(step, IsOk());
      if (!step.ok()) break;
      trained.steps.push_back(*std::move(step));
    }
    if (training.ok()) trained.program = (*training)->program();
    return trained;
  }

  void ExpectSame(const Program& program, const Trace& one, const Program& spread_program,
                  const Trace& spread) {
    ASSERT_EQ(one.devices.size(), spread.devices.size());
    for (size_t d = 0; d < one.devices.size(); ++d) {
      SCOPED_TRACE(absl::StrCat("rank ", d));
      const DeviceTrace &a = one.devices[d], &b = spread.devices[d];
      EXPECT_EQ(a.peak_activation, b.peak_activation);
      EXPECT_EQ(a.peak_state, b.peak_state);
      EXPECT_EQ(a.bytes_sent, b.bytes_sent);
      EXPECT_EQ(a.messages_sent, b.messages_sent);
      EXPECT_EQ(a.collective_bytes, b.collective_bytes);
      EXPECT_EQ(a.tensor_bytes, b.tensor_bytes);
      // The spread run may have fills between the instructions of the other.
      const DeviceSpans spans = SpansOf(program, one, d);
      size_t next = 0;
      for (const ExecutedInstruction& span : SpansOf(spread_program, spread, d)) {
        ASSERT_LE(span.begin_ns, span.end_ns);
        ASSERT_GE(span.begin_ns, 0);
        ASSERT_LE(span.end_ns, spread.makespan.value());
        if (fill_works_ != nullptr && span.op == OpCode::kFill) continue;
        ASSERT_LT(next, spans.size());
        const ExecutedInstruction same = spans[next++];
        ASSERT_EQ(same.op, span.op);
        ASSERT_EQ(same.action, span.action);
      }
      EXPECT_EQ(next, spans.size());
    }
  }

  // Trains over the processes, and process 0 alone as well.
  void ExpectEqual(TrainingOptions options) {
    SCOPED_TRACE(Describe(options));
    options.wait_limit = absl::Seconds(60);
    Trained alone;
    if (Group().rank() == 0) alone = Train(options);
    options.transport = &TestTransport();
    options.fill_works = fill_works_;
    options.fill.learn_steps = 1;
    options.fill.slack = Nanoseconds(0);
    const Trained spread = Train(options);
    std::string losses;
    for (const TrainingStep& step : spread.steps) absl::StrAppendFormat(&losses, "%a ", step.loss);
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto all, Group().ToAll(losses, kLong));
    for (const std::string& other : all) EXPECT_EQ(other, losses) << "every process has the losses";
    if (Group().rank() != 0) return;
    ASSERT_EQ(alone.steps.size(), static_cast<size_t>(kMpiSteps));
    ASSERT_EQ(spread.steps.size(), static_cast<size_t>(kMpiSteps));
    for (int i = 0; i < kMpiSteps; ++i) {
      const TrainingStep &a = alone.steps[i], &b = spread.steps[i];
      EXPECT_EQ(a.loss, b.loss) << "step " << i;
      EXPECT_EQ(a.gradient_norm, b.gradient_norm) << "step " << i;
      ExpectSame(alone.program, a.trace, spread.program, b.trace);
    }
  }

  std::unique_ptr<TextBatchSource> batches_;
  ModelGraph graph_;
  // The jobs are those of the processes alone.
  std::function<absl::StatusOr<FillWorks>(int rank, Backend* backend)> fill_works_;
};

TEST_F(MpiTrainingTest, EveryScheme) {
  int served = 0;
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kTokenPasses) != 0) continue;  // pipelines/serving/generate_test.cc
    const TrainingOptions options = SmallTraining(std::string(scheme.name), 4, 8);
    if (!Serves(options.config)) continue;              // needs other sizes
    if ((scheme.options & kStageGraph) != 0) continue;  // needs a graph
    ++served;
    ExpectEqual(options);
  }
  EXPECT_GE(served, 20);
}

// Every rank scores texts while it waits.
TEST_F(MpiTrainingTest, FillJobsChangeNothing) {
  std::vector<std::shared_ptr<EvaluationResults>> results;
  fill_works_ = [&](int, Backend* backend) -> absl::StatusOr<FillWorks> {
    EvaluationOptions options;
    options.samples = 1000;
    results.push_back(std::make_shared<EvaluationResults>());
    FillWorks works(1);
    PIPELAB_ASSIGN_OR_RETURN(works[0], MakeEvaluation("texts", graph_, batches_.get(), backend,
                                                      options, results.back()));
    return works;
  };
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kTokenPasses) != 0) continue;  // pipelines/serving/generate_test.cc
    const TrainingOptions options = SmallTraining(std::string(scheme.name), 4, 8);
    if (!Serves(options.config)) continue;
    if ((scheme.options & kStageGraph) == 0) ExpectEqual(options);
  }
  int64_t samples = 0;
  for (const auto& r : results) samples += r->samples;
  EXPECT_GT(samples, 0);
}

TEST_F(MpiTrainingTest, Sharded) {
  for (const Sharding sharding :
       {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    for (const char* scheme : {"breadth_first", "1f1b", "chimera"}) {
      TrainingOptions options = SmallTraining(scheme, 2, 8);
      options.config.data = 2;
      options.config.micro_batch_size = kSmallSamples / 2;
      options.config.sharding = sharding;
      options.config.overlap_data = true;
      ExpectEqual(options);
    }
  }
}

// Two sets of two: sums within a set, then between the sets.
TEST_F(MpiTrainingTest, ShardedInSets) {
  for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    for (const auto& [scheme, devices] :
         {std::make_tuple("1f1b", 1), std::make_tuple("interleaved", 2),
          std::make_tuple("chimera", 2)}) {
      TrainingOptions options = SmallTraining(scheme, devices, 8);
      options.config.data = 4;
      options.config.micro_batch_size = 1;
      options.config.sharding = sharding;
      options.config.shards = 2;
      options.config.overlap_data = true;
      options.optimizer.clip_norm = 0.5;
      ExpectEqual(options);
    }
  }
}

TEST_F(MpiTrainingTest, TiedAndClipped) {
  graph_ = SmallGpt(/*tied=*/true);
  for (const char* scheme : {"1f1b", "chimera", "zb_h1"}) {
    TrainingOptions options = SmallTraining(scheme, 4, 8);
    options.optimizer.clip_norm = 0.5;
    ExpectEqual(options);
  }
}

TEST_F(MpiTrainingTest, TensorParallelGroups) {
  GptConfig config;
  config.layers = 7;
  config.hidden = 16;
  config.heads = 4;
  config.tokens = kSmallTokens;
  config.vocabulary = (batches_->vocabulary() + 3) / 4 * 4;
  config.dropout = 0.1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(graph_, BuildGpt(config));
  for (const bool sequence : {false, true}) {
    for (const auto& [pipeline, tensor, data] :
         {std::make_tuple(2, 2, 1), std::make_tuple(1, 4, 1), std::make_tuple(2, 2, 2),
          std::make_tuple(4, 2, 1)}) {
      TrainingOptions options = SmallTraining("interleaved", pipeline, 8);
      options.config.data = data;
      options.config.micro_batch_size = kSmallSamples / data;
      options.config.tensor = tensor;
      options.config.sequence_parallel = sequence;
      ExpectEqual(options);
    }
  }
}

// Parts of the tokens, of whole and of tensor-parallel devices, weights sharded over all of them.
TEST_F(MpiTrainingTest, ContextParallelDevicesTrainAsInOneProcess) {
  for (const Sharding sharding : {Sharding::kReplicated, Sharding::kFully}) {
    for (const auto& [pipeline, tensor, data, context] :
         {std::make_tuple(2, 1, 1, 2), std::make_tuple(1, 1, 1, 4), std::make_tuple(2, 1, 2, 2),
          std::make_tuple(2, 2, 1, 2)}) {
      TrainingOptions options = SmallTraining("1f1b", pipeline, 8);
      options.config.data = data;
      options.config.micro_batch_size = kSmallSamples / data;
      options.config.tensor = tensor;
      options.config.context = context;
      options.config.sharding = sharding;
      ExpectEqual(options);
      options.config.context_exchange = ContextExchange::kRing;
      ExpectEqual(options);
      if (tensor * context > 2) continue;  // of two heads
      options.config.context_exchange = ContextExchange::kHeads;
      ExpectEqual(options);
    }
  }
}

// Grouped queries in windows, and latent attention: gathered, round a ring, and by heads.
TEST_F(MpiTrainingTest, ContextParallelAttentionTrainsAsInOneProcess) {
  for (const bool latent : {false, true}) {
    GptConfig config = LlamaConfig(/*layers=*/4, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/24,
                                   kSmallTokens, batches_->vocabulary());
    config.kv_heads = latent ? 0 : 2;
    config.query_key_norms = !latent;
    if (latent) config.latent = {6, /*rank=*/5, /*nope_size=*/4, /*rope_size=*/2, /*value_size=*/3};
    if (!latent) config.windows = {2, 0};
    PIPELAB_ASSERT_OK_AND_ASSIGN(graph_, BuildGpt(config));
    for (const ContextExchange exchange :
         {ContextExchange::kGather, ContextExchange::kRing, ContextExchange::kHeads}) {
      for (const auto& [scheme, pipeline, context] :
           {std::make_tuple("zb_h1", 2, 2), std::make_tuple("interleaved", 2, 2),
            std::make_tuple("1f1b", 1, 4)}) {
        const bool few = exchange == ContextExchange::kHeads && context > config.kv_heads;
        if (few && !latent) continue;  // four devices do not divide two heads of keys
        TrainingOptions options = SmallTraining(scheme, pipeline, 8);
        options.config.context = context;
        options.config.context_exchange = exchange;
        ExpectEqual(options);
      }
    }
  }
}

// Rows go between processes to their experts, as many as the tokens choose.
TEST_F(MpiTrainingTest, DividedExpertsTrainAsInOneProcess) {
  GptConfig config = LlamaConfig(/*layers=*/3, /*hidden=*/16, /*heads=*/4, /*feed_forward=*/24,
                                 kSmallTokens, (batches_->vocabulary() + 3) / 4 * 4);
  config.dropout = 0.1;
  config.experts.experts = 4;
  config.experts.chosen = 2;
  config.experts.shared = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(graph_, BuildGpt(config));
  for (const Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully}) {
    for (const auto& [pipeline, tensor, data, experts] :
         {std::make_tuple(2, 1, 2, 2), std::make_tuple(1, 1, 4, 4), std::make_tuple(1, 1, 4, 2),
          std::make_tuple(2, 1, 4, 2), std::make_tuple(1, 2, 2, 2), std::make_tuple(1, 2, 2, 4)}) {
      TrainingOptions options = SmallTraining(pipeline == 2 ? "zb_h1" : "1f1b", pipeline, 8);
      options.config.data = data;
      options.config.micro_batch_size = 4 / data;
      options.config.tensor = tensor;
      options.config.experts = experts;
      options.config.whole_experts = options.config.sequence_parallel = experts > data;
      options.config.sharding = sharding;
      options.optimizer.clip_norm = 0.5;
      ExpectEqual(options);
    }
  }
}

TEST_F(MpiTrainingTest, DevicesThatDoNotDivideAreRefused) {
  TrainingOptions options = SmallTraining("1f1b", 5, 10);
  options.transport = &TestTransport();
  EXPECT_THAT(
      PipelineTraining::Create(graph_, *batches_, options),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(absl::StrCat(Group().size(), " processes cannot share 5 devices"))));
  ASSERT_THAT(Group().Meet(kLong), IsOk());
}

TEST_F(MpiTrainingTest, Checkpoints) {
  for (const SpreadCheckpointCase& c : SpreadCheckpointCases()) {
    SCOPED_TRACE(c.name);
    c.run(TestTransport());
  }
}

}  // namespace
}  // namespace pipelab
