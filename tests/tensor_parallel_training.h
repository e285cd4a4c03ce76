// Training a small GPT whose layers are divided among devices, held to what is predicted of it:
// what the tests of tensor, context and expert parallelism have in common.
#ifndef PIPELAB_TESTS_TENSOR_PARALLEL_TRAINING_H_
#define PIPELAB_TESTS_TENSOR_PARALLEL_TRAINING_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {

constexpr int kGridSteps = 4;
constexpr int kGridMicroBatches = 8;

// Words, heads and inner columns that 8 devices divide; 16 layers, a stage each for 8 x 2.
inline GptConfig DividedGpt(bool tied) {
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

// Llama's blocks of these sizes.
inline GptConfig DividedLlama(int64_t feed_forward) {
  const GptConfig gpt = DividedGpt(/*tied=*/false);
  GptConfig config =
      LlamaConfig(/*layers=*/4, gpt.hidden, gpt.heads, feed_forward, gpt.tokens, gpt.vocabulary);
  config.dropout = 0.1;
  return config;
}

// With DeepSeek-V3's latent attention; rank 0: whole queries.
inline GptConfig DividedLatent(int64_t query_rank) {
  GptConfig config = DividedLlama(/*feed_forward=*/40);
  config.latent = {query_rank, /*rank=*/10, /*nope_size=*/6, /*rope_size=*/4, /*value_size=*/5};
  return config;
}

struct Grid {
  int pipeline = 1, tensor = 1, data = 1, context = 1;
};

struct GridResult {
  std::vector<double> losses, norms;
  std::vector<std::vector<float>> parameters;  // whole, in graph order
};

class TensorParallelTest : public testing::Test {
 protected:
  TrainingOptions OptionsOf(const std::string& scheme, Grid grid) {
    TrainingOptions options = SmallTraining(scheme, grid.pipeline, kGridMicroBatches);
    options.config.data = grid.data;
    options.config.tensor = grid.tensor;
    options.config.context = grid.context;
    options.config.micro_batch_size = samples_ / grid.data;
    return options;
  }

  SerialOptions SerialOf(const TrainingOptions& options) {
    SerialOptions serial = SmallSerial(*batches_, kGridMicroBatches);
    serial.micro_batch_size = options.samples();
    serial.optimizer = options.optimizer;
    return serial;
  }

  // Serial losses of one graph, by samples of a micro-batch and the norm to clip to.
  using Known = std::map<std::pair<int64_t, double>, std::vector<double>>;
  const std::vector<double>& SerialOnce(const ModelGraph& graph, const TrainingOptions& options,
                                        Known* known) {
    std::vector<double>& losses = (*known)[{options.samples(), options.optimizer.clip_norm}];
    if (losses.empty()) losses = SerialLosses(graph, SerialOf(options), kGridSteps);
    return losses;
  }

  // Every rank of a group does what the program's device is predicted to do, to the byte.
  void ExpectAsPredicted(const Trace& predicted, const Trace& ranks, const TrainingOptions& o) {
    ASSERT_EQ(ranks.devices.size(), predicted.devices.size() * o.config.tensor);
    for (int64_t t = 0; t < o.config.tensor; ++t) {
      const Trace measured = TraceOfMember(ranks, o.config.tensor, t);
      ExpectStateAndTraffic(predicted, measured);
      for (size_t d = 0; d < predicted.devices.size(); ++d) {
        const DeviceTrace &p = predicted.devices[d], &m = measured.devices[d];
        EXPECT_EQ(m.tensor_bytes > Bytes(0),
                  o.config.tensor * o.config.context * o.config.experts > 1);
        if (!even_loads_) continue;
        if (o.config.sequence_parallel && o.config.sharding != Sharding::kReplicated) {
          EXPECT_NEAR(m.tensor_bytes / p.tensor_bytes, 1, 0.02) << "device " << d;
        } else {
          EXPECT_EQ(m.tensor_bytes, p.tensor_bytes) << "device " << d;
        }
        if (parts_differ_) {
          EXPECT_LE(m.peak_activation, p.peak_activation) << "device " << d;
        } else {
          EXPECT_EQ(m.peak_activation, p.peak_activation) << "device " << d;
        }
      }
      for (size_t d = 0; parts_differ_ && d < predicted.devices.size(); d += o.config.context) {
        Bytes most;
        for (int64_t c = 0; c < o.config.context; ++c) {
          most = std::max(most, measured.devices[d + c].peak_activation);
        }
        EXPECT_EQ(most, predicted.devices[d].peak_activation) << "device " << d;
      }
    }
  }

  GridResult Train(const ModelGraph& graph, const TrainingOptions& options) {
    return Train(graph, *batches_, options);
  }
  GridResult Train(const ModelGraph& graph, const BatchSource& batches,
                   const TrainingOptions& options) {
    GridResult run;
    auto training = PipelineTraining::Create(graph, batches, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return run;
    const auto predicted = Simulate((*training)->program(), (*training)->costs());
    EXPECT_THAT(predicted, IsOk());
    if (!predicted.ok()) return run;
    for (int step = 0; step < kGridSteps; ++step) {
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

  void ExpectTrainsAsSerial(const ModelGraph& graph, const GridResult& run,
                            const TrainingOptions& options, const std::vector<double>& serial) {
    SchemeResult scheme;
    scheme.config = options.config;
    scheme.losses = run.losses;
    AllowForDivision(graph,
                     {options.config.tensor, false, options.config.context, options.config.experts},
                     /*bfloat16=*/false, &scheme);
    // A micro-batch's gradients are then sums over two chunks of each sample on each device.
    if (options.config.context > 1) {
      scheme.num_slices = static_cast<int>(2 * options.config.context * samples_);
    }
    const Equality equality = CompareLosses(scheme, serial);
    EXPECT_TRUE(equality.ok) << equality.text;
    EXPECT_LT(run.losses.back(), run.losses.front());
  }

  const std::unique_ptr<BatchSource> batches_ = SmallText();
  int64_t samples_ = kSmallSamples;
  // Whether devices with parts of the same tokens need unequal room, the fullest what is predicted.
  bool parts_differ_ = false;
  bool even_loads_ = true;  // of experts that devices divide: then all is as predicted
};

inline std::string Text(const Grid& g) {
  return absl::StrCat("P=", g.pipeline, " T=", g.tensor, " D=", g.data, " C=", g.context);
}

}  // namespace pipelab

#endif  // PIPELAB_TESTS_TENSOR_PARALLEL_TRAINING_H_
