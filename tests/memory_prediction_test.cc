// Predicted and measured peak activation memory, per device, for every scheme. Both sides count the
// same allocations, so they agree to the byte.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/early_recompute.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

struct MemoryCase {
  int devices, micro_batches, virtual_stages;
  bool recompute, tied, blocks;
};

TEST(MemoryPrediction, EverySchemeToTheByteOfTheArena) {
  int checked = 0;
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kTokenPasses) != 0) continue;  // pipelines/serving/generate_test.cc
    for (const MemoryCase& c :
         {MemoryCase{1, 2, 0, false, false, false}, MemoryCase{2, 4, 0, false, false, false},
          MemoryCase{2, 4, 0, true, false, false}, MemoryCase{2, 4, 0, false, false, true},
          MemoryCase{4, 8, 0, false, true, false}, MemoryCase{4, 8, 0, true, true, false},
          MemoryCase{4, 4, 2, false, false, false}, MemoryCase{3, 5, 0, false, false, false},
          MemoryCase{8, 8, 0, false, false, false}}) {
      if (scheme.asynchronous && c.tied) continue;  // Lower refuses ties between stages
      const ModelGraph graph = SmallGpt(c.tied);
      const std::unique_ptr<BatchSource> batches = SmallText();
      TrainingOptions options;
      options.config.scheme = std::string(scheme.name);
      options.config.pipeline = c.devices;
      options.config.micro_batches = c.micro_batches;
      options.config.virtual_stages = c.virtual_stages;
      options.config.recompute = c.recompute ? Recompute::kFull : Recompute::kNone;
      options.config.micro_batch_size = kSmallSamples;
      if (c.blocks && (scheme.options & kTokenSlices) == 0) {  // not with token slices
        options.config.recompute = Recompute::kBlocks;
        options.config.rebuilt_blocks = c.devices == 2 ? 1 : 0;
      }
      if (!MakeSchedule(options.config.scheme, SchemeSizes(options.config, options.config.copies()))
               .ok())
        continue;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                   PipelineTraining::Create(graph, *batches, options));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                   Simulate(training->program(), training->costs()));
      PIPELAB_ASSERT_OK_AND_ASSIGN(TrainingStep step, training->Step());
      PIPELAB_ASSERT_OK_AND_ASSIGN(step, training->Step());  // the second step is like all others
      for (int d = 0; d < c.devices; ++d) {
        const Bytes p = predicted.devices[d].peak_activation,
                    m = step.trace.devices[d].peak_activation;
        EXPECT_GT(m, Bytes(0));
        EXPECT_EQ(p, m) << scheme.name << " P=" << c.devices << " M=" << c.micro_batches
                        << " recompute=" << c.recompute << " device " << d;
        EXPECT_EQ(predicted.devices[d].peak_state, step.trace.devices[d].peak_state)
            << scheme.name << " " << d;
        EXPECT_EQ(predicted.devices[d].bytes_sent, step.trace.devices[d].bytes_sent)
            << scheme.name << " " << d;
        EXPECT_EQ(predicted.devices[d].peak_host, step.trace.devices[d].peak_host)
            << scheme.name << " " << d;
        EXPECT_EQ(predicted.devices[d].host_bytes, step.trace.devices[d].host_bytes)
            << scheme.name << " " << d;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 80);
}

// Recomputes that come early are executed as simulated: the same bits, and on each device the
// memory that was predicted, to the byte.
TEST(MemoryPrediction, OfRecomputesInGaps) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches = SmallText();
  int moved = 0;
  for (const char* scheme : {"1f1b", "chimera", "hanayo"}) {
    SchemeParams sizes{4, 8};
    sizes.recompute = true;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule plain, MakeSchedule(scheme, sizes));
    PassLengths lengths = PassLengths::Unit(plain.num_stages());
    lengths.recompute = lengths.forward;
    std::vector<double> losses;
    for (const int ahead : {0, 1, 3}) {
      TrainingOptions options;
      options.schedule = RecomputeInGaps(plain, lengths, ahead);
      options.config.micro_batch_size = kSmallSamples;
      moved += options.schedule->order != plain.order;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                   PipelineTraining::Create(graph, *batches, options));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                   Simulate(training->program(), training->costs()));
      PIPELAB_ASSERT_OK_AND_ASSIGN(TrainingStep step, training->Step());
      PIPELAB_ASSERT_OK_AND_ASSIGN(step, training->Step());
      losses.push_back(step.loss);
      for (int d = 0; d < 4; ++d) {
        EXPECT_EQ(predicted.devices[d].peak_activation, step.trace.devices[d].peak_activation)
            << scheme << " " << ahead << " " << d;
      }
    }
    EXPECT_EQ(losses[1], losses[0]) << scheme;
    EXPECT_EQ(losses[2], losses[0]) << scheme;
  }
  EXPECT_GT(moved, 3);
}

}  // namespace
}  // namespace pipelab
