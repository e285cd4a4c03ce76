// A small GPT whose layers are divided among tensor-parallel groups, for real: every grid P x T x D
// of 2 to 8 devices, several schemes and shardings. Losses and parameters as in serial training,
// and the bits of one group where only the pipeline differs; bytes sent and memory as predicted.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/comparison.h"
#include "experiments/training.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/checkpoint/training_state.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kSteps = 4;
constexpr int kMicroBatches = 8;

// Words, heads and inner columns that 8 devices divide; 16 layers, a stage each for 8 x 2.
GptConfig DividedGpt(bool tied) {
  GptConfig config;
  config.layers = 7;
  config.hidden = 16;
  config.heads = 8;
  config.tokens = kSmallTokens;
  config.vocabulary = (SmallText()->vocabulary() + 7) / 8 * 8;
  config.dropout = 0.1;
  config.tied_embeddings = tied;
  return config;
}

struct Grid {
  int pipeline = 1, tensor = 1, data = 1;
};

struct Result {
  std::vector<double> losses, norms;
  std::vector<std::vector<float>> parameters;  // whole, in graph order
};

class TensorParallelTest : public testing::Test {
 protected:
  TrainingOptions OptionsOf(const std::string& scheme, Grid grid) {
    TrainingOptions options = SmallTraining(scheme, grid.pipeline, kMicroBatches);
    options.sizes.data_parallel = grid.data;
    options.tensor_parallel = grid.tensor;
    options.micro_batch_samples = samples_;
    return options;
  }

  SerialOptions SerialOf(const TrainingOptions& options) {
    SerialOptions serial = SmallSerial(*batches_, kMicroBatches);
    serial.micro_batch_samples = options.micro_batch_samples;
    serial.optimizer = options.optimizer;
    return serial;
  }

  // Every rank of a group does what the program's device is predicted to do. Activations to the
  // byte, but where a data-parallel group divides rows: what does not depend on them is not
  // divided.
  void ExpectAsPredicted(const Trace& predicted, const Trace& ranks, const TrainingOptions& o) {
    ASSERT_EQ(ranks.devices.size(), predicted.devices.size() * o.tensor_parallel);
    for (int64_t t = 0; t < o.tensor_parallel; ++t) {
      const Trace measured = TraceOfMember(ranks, o.tensor_parallel, t);
      ExpectStateAndTraffic(predicted, measured);
      for (size_t d = 0; d < predicted.devices.size(); ++d) {
        const DeviceTrace &p = predicted.devices[d], &m = measured.devices[d];
        if (o.sequence_parallel && o.lowering.sharding != Sharding::kReplicated) {
          EXPECT_NEAR(m.tensor_bytes / p.tensor_bytes, 1, 0.02) << "device " << d;
        } else {
          EXPECT_EQ(m.tensor_bytes, p.tensor_bytes) << "device " << d;
        }
        EXPECT_EQ(m.tensor_bytes > Bytes(0), o.tensor_parallel > 1);
        if (o.sizes.data_parallel == 1) {
          EXPECT_EQ(m.peak_activation, p.peak_activation) << "device " << d;
        } else {
          EXPECT_LE(std::abs(p.peak_activation / m.peak_activation - 1), 0.02) << "device " << d;
        }
      }
    }
  }

  Result Train(const ModelGraph& graph, const TrainingOptions& options) {
    Result run;
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return run;
    const auto predicted = Simulate((*training)->program(), (*training)->costs());
    EXPECT_THAT(predicted, IsOk());
    if (!predicted.ok()) return run;
    for (int step = 0; step < kSteps; ++step) {
      const absl::StatusOr<TrainingStep> done = (*training)->Step();
      EXPECT_THAT(done, IsOk());
      if (!done.ok()) return run;
      run.losses.push_back(done->loss);
      run.norms.push_back(done->gradient_norm);
      SCOPED_TRACE(absl::StrCat("step ", step));
      ExpectAsPredicted(*predicted, done->trace, options);
    }
    for (const LayerSpec& layer : graph.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        auto value = (*training)->ParameterValue(p.name);
        EXPECT_THAT(value, IsOk());
        if (!value.ok()) return run;
        EXPECT_EQ(static_cast<int64_t>(value->size()), p.size()) << p.name;
        run.parameters.push_back(*std::move(value));
      }
    }
    return run;
  }

  void ExpectTrainsAsSerial(const ModelGraph& graph, const Result& run,
                            const TrainingOptions& options, const std::vector<double>& serial) {
    SchemeResult scheme;
    scheme.scheme = options.scheme;
    scheme.sizes = options.sizes;
    scheme.losses = run.losses;
    scheme.tensor_terms = options.tensor_parallel > 1 ? SplitTerms(graph) : 0;
    const Equality equality = CompareLosses(scheme, serial);
    EXPECT_TRUE(equality.ok) << equality.text;
    EXPECT_LT(run.losses.back(), run.losses.front());
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
  int64_t samples_ = kSmallSamples;
};

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

std::string Text(const Grid& g) {
  return absl::StrCat("P=", g.pipeline, " T=", g.tensor, " D=", g.data);
}

// The requirement: every grid of 2 to 8 devices.
TEST_F(TensorParallelTest, EveryGridTrainsAsSerial) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  std::map<int64_t, std::vector<double>> serial;  // by samples of a micro-batch
  for (const Grid& grid : GridsOf(8)) {
    samples_ = grid.data % 2 == 0 ? grid.data : 2 * grid.data;  // rows that the group divides
    TrainingOptions options = OptionsOf("1f1b", grid);
    if (serial.count(samples_) == 0) {
      serial[samples_] = SerialLosses(graph, SerialOf(options), kSteps);
    }
    for (Sharding sharding : {Sharding::kReplicated, Sharding::kFully}) {
      if (sharding == Sharding::kFully && grid.data == 1) continue;
      options.lowering.sharding = sharding;
      SCOPED_TRACE(absl::StrCat(Text(grid), " ", ShardingName(sharding)));
      ExpectTrainsAsSerial(graph, Train(graph, options), options, serial[samples_]);
    }
  }
}

// Schemes, shardings, recomputation and ties on grids of 4 and 8 devices; rendezvous and overlap.
TEST_F(TensorParallelTest, EverySchemeTrainsAsSerial) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = *BuildGpt(DividedGpt(tied));
    for (const std::string scheme :
         {"gpipe", "1f1b", "interleaved", "breadth_first", "zb_h1", "zbv", "chimera"}) {
      for (const Grid& grid : {Grid{2, 2, 1}, Grid{2, 4, 1}, Grid{4, 2, 1}, Grid{2, 2, 2}}) {
        samples_ = 2;
        TrainingOptions options = OptionsOf(scheme, grid);
        const std::vector<double> serial = SerialLosses(graph, SerialOf(options), kSteps);
        for (Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients,
                                  Sharding::kFully}) {
          if (sharding != Sharding::kReplicated && grid.data == 1) continue;
          const bool hard = sharding >= Sharding::kGradients;
          options.lowering.sharding = sharding;
          options.lowering.overlap = hard;
          options.rendezvous = hard || tied;
          options.sizes.recompute = tied && scheme == "gpipe";
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
    const Result one = Train(graph, OptionsOf("gpipe", {1, tensor, 1}));
    for (const std::string scheme : {"gpipe", "1f1b", "interleaved", "breadth_first", "zb_h1"}) {
      SCOPED_TRACE(absl::StrCat(scheme, " T=", tensor));
      const Result pipeline = Train(graph, OptionsOf(scheme, {2, tensor, 1}));
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
        if (sequence && scheme == "terapipe") continue;  // no token slices
        SCOPED_TRACE(absl::StrCat(scheme, " T=", tensor, " rows split: ", sequence));
        TrainingOptions options = OptionsOf(scheme, {4, tensor, 1});
        options.sequence_parallel = sequence;
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
    for (const Grid& grid : {Grid{1, 2, 1}, Grid{1, 8, 1}, Grid{2, 2, 1}, Grid{4, 2, 1},
                             Grid{2, 2, 2}, Grid{1, 4, 2}}) {
      for (const std::string scheme : {"1f1b", "breadth_first", "zb_h1"}) {
        TrainingOptions options = OptionsOf(scheme, grid);
        options.sequence_parallel = true;
        if (tied) options.optimizer.clip_norm = 0.2;
        const std::vector<double> serial = SerialLosses(graph, SerialOf(options), kSteps);
        for (Sharding sharding : {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kFully}) {
          if (sharding != Sharding::kReplicated && grid.data == 1) continue;
          options.lowering.sharding = sharding;
          SCOPED_TRACE(absl::StrCat(scheme, " ", Text(grid), " ", ShardingName(sharding)));
          ExpectTrainsAsSerial(graph, Train(graph, options), options, serial);
        }
      }
    }
  }
}

// Gradients, seen as what plain gradient descent subtracts: sums of a product's terms in another
// order, and then through every layer. Each parameter against its own largest gradient.
TEST_F(TensorParallelTest, GradientsAreTheSerialOnes) {
  for (const bool tied : {false, true}) {
    const ModelGraph graph = *BuildGpt(DividedGpt(tied));
    for (const Grid& grid : {Grid{1, 2, 1}, Grid{1, 8, 1}, Grid{2, 2, 2}, Grid{4, 2, 1}}) {
      SCOPED_TRACE(absl::StrCat(Text(grid), " tied=", tied));
      TrainingOptions options = OptionsOf("1f1b", grid);
      options.sequence_parallel = tied;
      SgdOptions sgd;
      sgd.learning_rate = 1;
      options.optimizer = OptimizerOptions::Sgd(sgd);
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                   PipelineTraining::Create(graph, *batches_, options));
      Arena arena;
      const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer,
                                   SerialTrainer::Create(graph, backend.get(), SerialOf(options)));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const auto gradients, trainer->LossGradients());
      std::map<std::string, std::string> parameter;  // of a value, one that has it
      for (const LayerSpec& layer : graph.layers) {
        for (const ParameterSpec& p : layer.parameters) parameter.emplace(ValueName(p), p.name);
      }
      std::map<std::string, std::vector<float>> before;
      for (const auto& [name, gradient] : gradients) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(before[name], training->ParameterValue(parameter.at(name)));
      }
      ASSERT_THAT(training->Step(), IsOk());
      const double share =
          static_cast<double>(SplitTerms(graph)) * std::numeric_limits<float>::epsilon();
      for (const auto& [name, gradient] : gradients) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<float> after,
                                     training->ParameterValue(parameter.at(name)));
        ASSERT_EQ(after.size(), gradient.size()) << name;
        double largest = 0;
        for (float g : gradient) largest = std::max(largest, std::abs(double{g}));
        for (size_t i = 0; i < gradient.size(); ++i) {
          const double step = double{before[name][i]} - double{after[i]};
          // The difference of two floats has their rounding.
          const double rounding =
              std::numeric_limits<float>::epsilon() * std::abs(double{before[name][i]});
          ASSERT_NEAR(step, gradient[i], share * largest + rounding) << name << "[" << i << "]";
        }
      }
    }
  }
}

// The norm of all gradients: each element once, whichever ranks have it.
TEST_F(TensorParallelTest, ClippingByTheGlobalNorm) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/true));
  TrainingOptions options = OptionsOf("1f1b", {2, 1, 1});
  options.optimizer.clip_norm = 0.2;
  const Result whole = Train(graph, options);
  const std::vector<double> serial = SerialLosses(graph, SerialOf(options), kSteps);
  for (const Grid& grid : {Grid{1, 2, 1}, Grid{2, 2, 1}, Grid{2, 2, 2}, Grid{1, 4, 2}}) {
    for (Sharding sharding : {Sharding::kReplicated, Sharding::kFully}) {
      if (sharding == Sharding::kFully && grid.data == 1) continue;
      SCOPED_TRACE(absl::StrCat(Text(grid), " ", ShardingName(sharding)));
      options.sizes.devices = grid.pipeline;
      options.sizes.data_parallel = grid.data;
      options.tensor_parallel = grid.tensor;
      options.lowering.sharding = sharding;
      const Result run = Train(graph, options);
      ExpectTrainsAsSerial(graph, run, options, serial);
      ASSERT_EQ(run.norms.size(), whole.norms.size());
      for (size_t i = 0; i < run.norms.size(); ++i) {
        EXPECT_GT(run.norms[i], options.optimizer.clip_norm);
        EXPECT_NEAR(run.norms[i], whole.norms[i],
                    LossTolerance(static_cast<int>(i) + 1, SplitTerms(graph), whole.norms[i]));
      }
    }
  }
}

// A state is of whole parameters: it goes from any division to any other, and on with the same bits
// where the division is the same.
TEST_F(TensorParallelTest, StatesGoBetweenDivisions) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/true));
  TrainingOptions options = OptionsOf("1f1b", {2, 2, 2});
  options.lowering.sharding = Sharding::kFully;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto first, PipelineTraining::Create(graph, *batches_, options));
  for (int step = 0; step < 3; ++step) ASSERT_THAT(first->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState state, first->State());
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, first->Step());
    losses.push_back(done.loss);
  }
  for (const Grid& grid : {Grid{2, 2, 2}, Grid{4, 2, 1}, Grid{1, 1, 1}, Grid{1, 8, 1}}) {
    SCOPED_TRACE(Text(grid));
    TrainingOptions other = OptionsOf("1f1b", grid);
    if (grid.data > 1) other.lowering.sharding = Sharding::kOptimizer;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto next, PipelineTraining::Create(graph, *batches_, other));
    ASSERT_THAT(next->SetState(state), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingState back, next->State());
    ASSERT_EQ(back.tensors.size(), state.tensors.size());
    for (const auto& [key, tensor] : state.tensors) {
      EXPECT_TRUE(back.tensors.at(key).values == tensor.values) << key;
    }
    std::vector<double> again;
    for (int step = 0; step < 3; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, next->Step());
      again.push_back(done.loss);
    }
    const bool same_sums = grid.tensor == 2 && grid.data == 2;
    for (size_t i = 0; i < again.size(); ++i) {
      EXPECT_NEAR(again[i], losses[i],
                  same_sums ? 0 : LossTolerance(3, SplitTerms(graph), losses[0]));
    }
  }
}

// Asynchronous schedules and token slices have nothing to do with how a device computes its layers.
TEST_F(TensorParallelTest, OlderWeightsAndTokenSlices) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  for (const std::string scheme : {"pipedream", "pipedream_2bw", "terapipe"}) {
    SCOPED_TRACE(scheme);
    TrainingOptions options = OptionsOf(scheme, {2, 1, 1});
    const Result whole = Train(graph, options);
    options.tensor_parallel = 2;
    const Result divided = Train(graph, options);
    ASSERT_EQ(divided.losses.size(), whole.losses.size());
    for (size_t i = 0; i < whole.losses.size(); ++i) {
      // Optimizer steps of a run are as many as its micro-batches at most.
      EXPECT_NEAR(divided.losses[i], whole.losses[i],
                  LossTolerance(kSteps * kMicroBatches, SplitTerms(graph), whole.losses[0]));
    }
  }
}

// Text whose reader is held up once, in the middle of a step.
class SlowText : public BatchSource {
 public:
  SlowText(const BatchSource* text, int64_t calls, absl::Duration pause)
      : BatchSource(text->fields()), text_(text), pause_(pause), calls_(calls) {}
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out) const override {
    if (--calls_ == 0) absl::SleepFor(pause_);
    text_->FillIds(field, step, first_sample, out);
  }

 private:
  const BatchSource* const text_;
  const absl::Duration pause_;
  mutable std::atomic<int64_t> calls_;
};

// A member that does not come to a sum ends the run, with the place and the ranks, and what it left
// cannot be gone on from.
TEST_F(TensorParallelTest, AMemberThatDoesNotComeEndsTheRun) {
  const ModelGraph graph = *BuildGpt(DividedGpt(/*tied=*/false));
  TrainingOptions options = OptionsOf("1f1b", {2, 2, 1});
  options.wait_limit = absl::Milliseconds(300);
  const SlowText slow(batches_.get(), /*calls=*/9, absl::Seconds(1));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph, slow, options));
  EXPECT_THAT(training->Step(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                         AllOf(HasSubstr("device "), HasSubstr("waited"))));
  EXPECT_THAT(training->State(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("failed")));
}

TEST_F(TensorParallelTest, RefusesInOneLine) {
  GptConfig config = DividedGpt(/*tied=*/false);
  config.heads = 4;
  const ModelGraph graph = *BuildGpt(config);
  const auto refusal = [&](int64_t tensor) {
    TrainingOptions options = OptionsOf("1f1b", {2, 1, 1});
    options.tensor_parallel = tensor;
    return PipelineTraining::Create(graph, *batches_, options).status();
  };
  EXPECT_THAT(refusal(0), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("--tensor_parallel=0: must be at least 1")));
  EXPECT_THAT(refusal(3), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("--tensor_parallel=3: must divide the")));
  EXPECT_THAT(refusal(8),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--tensor_parallel=8: must divide the 4 heads of layer")));
}

}  // namespace
}  // namespace pipelab
