// The parts of each device's memory over time, for every scheme, with and without recomputation,
// under every sharding: they add up to the peaks of the trace to the byte, and what is kept is what
// the micro-batches in flight keep, counted one by one.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "models/zoo/transformer.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/cost/state_walk.h"
#include "pipelines/ir/versions.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/memory_levels.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_gpt.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

struct SimulatedRun {
  Program program;
  CostTable costs;
  Trace trace;
};

// The model in equal stages, as many as the schedule has.
void SimulateModel(const ModelGraph& graph, Schedule schedule, LoweringOptions options,
                   int64_t samples, SimulatedRun* run) {
  const std::vector<double> weights(graph.layers.size(), 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> first,
                               PartitionChain(weights, schedule.num_stages()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition, MakeRangePartition(graph, first));
  StageCostOptions costs;
  costs.TakeSizes(schedule);
  if (schedule.num_slices > 1) {  // slices of different lengths
    const int64_t tokens = graph.layers[0].output_shape[0];
    costs.slices.assign(schedule.num_slices, 1);
    costs.slices[0] = tokens - schedule.num_slices + 1;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(run->costs, ComputeStageCosts(graph, partition, samples, costs));
  options.ties = StageTies(graph, partition);
  const int window = schedule.stages.ReplayWindow();
  schedule.stages = partition.stages;
  if (window > 0) {  // only stages that learn locally read again
    schedule.stages.SetReplayWindow(window);
    for (StageGraph::Edge& e : schedule.stages.edges) e.gradient = Reads::None();
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(run->program, Lower(std::move(schedule), options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(run->trace, Simulate(run->program, run->costs));
}

void ExpectNotNegative(const MemoryParts& m) {
  for (Bytes b : {m.state.weights, m.state.gradients, m.state.optimizer, m.state.statistics,
                  m.state.older_weights, m.kept, m.messages, m.action}) {
    EXPECT_GE(b, Bytes(0));
  }
}

bool Varies(const Program& p) {
  return p.sharding == Sharding::kGradients || p.sharding == Sharding::kFully ||
         HasOwnSteps(p.schedule);
}

void ExpectPeaksOfTheTrace(const SimulatedRun& run) {
  const auto levels = MemoryLevels(run.program, run.costs, run.trace);
  const std::vector<MemoryPeak> peaks = PeakMemory(run.program, run.costs);
  ASSERT_EQ(levels.size(), run.trace.devices.size());
  for (size_t d = 0; d < levels.size(); ++d) {
    SCOPED_TRACE(testing::Message() << "device " << d);
    const DeviceTrace& device = run.trace.devices[d];
    Bytes activation, state, total;
    for (const MemoryPoint& p : levels[d]) {
      ExpectNotNegative(p.parts);
      activation = std::max(activation, p.parts.activation());
      state = std::max(state, p.parts.state.total());
      total = std::max(total, p.parts.total());
    }
    EXPECT_EQ(activation, device.peak_activation);
    EXPECT_EQ(state, device.peak_state);
    EXPECT_EQ(peaks[d].parts.total(), total);
    if (Varies(run.program)) {
      EXPECT_LE(total, device.peak_activation + device.peak_state);
    } else {
      EXPECT_EQ(total, device.peak_activation + device.peak_state);
    }
    ASSERT_FALSE(levels[d].empty());
    const MemoryParts& end = levels[d].back().parts;
    EXPECT_EQ(end.kept, Bytes(0));
    EXPECT_EQ(end.messages, Bytes(0));
    EXPECT_EQ(end.action, Bytes(0));
    EXPECT_EQ(end.state.older_weights, Bytes(0));
    const StateWalk begin(run.costs, run.program, static_cast<int>(d));
    EXPECT_EQ(end.state.total(), begin.now().total());
  }
}

// What the micro-batches in flight keep after each compute, from the definition of StageMemory.
void ExpectKeptOfTheMicroBatchesInFlight(const SimulatedRun& run) {
  const Schedule& s = run.program.schedule;
  const std::vector<bool> recomputed = s.RecomputedStages();
  const auto levels = MemoryLevels(run.program, run.costs, run.trace);
  for (size_t d = 0; d < levels.size(); ++d) {
    std::map<std::tuple<int, int, int>, int64_t> kept;  // by replica, stage, micro-batch
    std::vector<int64_t> expected = {0};
    for (const Instruction& i : run.program.instructions[d]) {
      const bool left = i.op == OpCode::kHostWait && i.action.kind == ActionKind::kOffload;
      if (i.op != OpCode::kCompute && i.op != OpCode::kReload && !left) continue;
      const StageMemory& m = run.costs.stages[i.action.stage].memory;
      int64_t inputs = 0;
      const auto group = static_cast<int64_t>(s.placement.groups[i.replica][i.action.stage].size());
      for (int e : s.stages.in_edges[i.action.stage]) {
        inputs += run.costs.edge_bytes[e].value() / group;
      }
      int64_t& mine = kept[{i.replica, i.action.stage, i.action.micro_batch}];
      switch (i.action.kind) {
        case ActionKind::kForward:
          if (s.forward_only) break;
          mine = inputs + (recomputed[i.action.stage] ? 0 : m.kept.value());
          break;
        case ActionKind::kRecompute:
        case ActionKind::kReload:
          mine = inputs + m.kept.value();
          break;
        case ActionKind::kBackwardInput:
          mine = m.kept_for_weight.value();
          break;
        case ActionKind::kBackward:
        case ActionKind::kBackwardWeight:
        case ActionKind::kOffload:
          mine = 0;
          break;
        case ActionKind::kStep:
          break;
      }
      const int64_t sum =
          std::accumulate(kept.begin(), kept.end(), int64_t{0},
                          [](int64_t a, const auto& entry) { return a + entry.second; });
      if (sum != expected.back()) expected.push_back(sum);
    }
    std::vector<int64_t> actual = {0};
    for (const MemoryPoint& p : levels[d]) {
      if (p.parts.action > Bytes(0)) continue;  // between actions
      if (actual.back() != p.parts.kept.value()) {
        actual.push_back(p.parts.kept.value());
      }
    }
    EXPECT_EQ(actual, expected) << "device " << d;
  }
}

std::vector<LoweringOptions> AllShardings() {
  std::vector<LoweringOptions> all(1);
  for (Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    for (bool hard : {false, true}) {
      LoweringOptions options;
      options.sharding = sharding;
      options.overlap = hard && sharding != Sharding::kOptimizer;
      options.residency =
          hard && sharding == Sharding::kFully ? Residency::kMicroBatch : Residency::kRun;
      options.norm_values = hard ? 7 : 0;
      all.push_back(options);
    }
  }
  return all;
}

TEST(MemoryParts, AddUpForTheWholeCatalogue) {
  const ModelGraph graph = SmallGpt(/*tied=*/false), tied = SmallGpt(/*tied=*/true);
  int programs = 0;
  for (const Scheme& scheme : Catalog()) {
    for (const auto& [devices, micro_batches] :
         {std::make_pair(1, 2), std::make_pair(2, 4), std::make_pair(4, 8)}) {
      for (const int data_parallel : {1, 2}) {
        for (const bool recompute : {false, true}) {
          SchemeParams params;
          params.devices = devices;
          params.micro_batches = micro_batches;
          params.data_parallel = data_parallel;
          params.recompute = recompute;
          const auto schedule = MakeSchedule(scheme.name, params);
          // Passes of tokens are no samples (//pipelines/serving).
          if (!schedule.ok() || !schedule->carried.empty()) continue;
          for (const LoweringOptions& options : AllShardings()) {
            const bool whole =
                scheme.asynchronous || schedule->forward_only || schedule->weights_travel;
            if (whole && options.sharding != Sharding::kReplicated) continue;
            SCOPED_TRACE(testing::Message()
                         << scheme.name << " P=" << devices << " M=" << micro_batches
                         << " D=" << data_parallel << " recompute=" << recompute << " "
                         << ShardingName(options.sharding) << " overlap=" << options.overlap);
            SimulatedRun run;
            SimulateModel(recompute && !scheme.asynchronous ? tied : graph, *schedule, options,
                          /*samples=*/2, &run);
            ExpectPeaksOfTheTrace(run);
            if (run.costs.slices.empty()) ExpectKeptOfTheMicroBatchesInFlight(run);
            if (HasFailure()) return;
            ++programs;
          }
        }
      }
    }
  }
  EXPECT_GT(programs, 500);
}

// Edges that skip stages.
TEST(MemoryParts, AddUpForAnEncoderAndDecoder) {
  TransformerConfig config;
  config.layers = 2;
  config.hidden = 16;
  config.heads = 2;
  config.feed_forward = 24;
  config.source_tokens = 6;
  config.target_tokens = 5;
  config.vocabulary = 11;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  for (const char* scheme : {"gpipe", "1f1b", "zb_h1", "interleaved"}) {
    for (const LoweringOptions& options : AllShardings()) {
      SCOPED_TRACE(testing::Message() << scheme << " " << ShardingName(options.sharding));
      SchemeParams params;
      params.devices = 3;
      params.micro_batches = 6;
      params.data_parallel = 2;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule(scheme, params));
      SimulatedRun run;
      SimulateModel(graph, schedule, options, /*samples=*/4, &run);
      ExpectPeaksOfTheTrace(run);
      ExpectKeptOfTheMicroBatchesInFlight(run);
    }
  }
}

// Stages with larger micro-batches put rows together.
TEST(MemoryParts, AddUpWhereStagesDifferInMicroBatches) {
  SchemeParams params;
  params.devices = 3;
  params.micro_batches = 8;
  params.micro_batches_of_stage = {8, 4, 2};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule schedule, MakeSchedule("graph", params));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(schedule, {}));
  CostTable costs = CostTable::Unit(program.schedule);
  for (Bytes& b : costs.edge_bytes) b = Bytes(1200);
  for (StageCost& stage : costs.stages) stage.memory.backward_peak = Bytes(100);
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, Simulate(program, costs));
  ExpectPeaksOfTheTrace({program, costs, std::move(trace)});
}

// Which part grows with what: gpipe keeps every micro-batch, 1f1b as many as there are devices, and
// recomputing leaves the inputs.
TEST(MemoryParts, KeptOfTheFirstDevice) {
  const ModelGraph graph = SmallGpt(/*tied=*/false);
  const auto kept = [&](const char* scheme, int micro_batches, bool recompute) {
    SchemeParams params;
    params.devices = 4;
    params.micro_batches = micro_batches;
    params.recompute = recompute;
    SimulatedRun run;
    SimulateModel(graph, MakeSchedule(scheme, params).value(), {}, 2, &run);
    const Bytes one = run.costs.stages[0].memory.kept;
    EXPECT_GT(one, Bytes(0));
    return PeakMemory(run.program, run.costs, 0).parts.kept / one;
  };
  EXPECT_EQ(kept("gpipe", 8, false), 8);
  EXPECT_EQ(kept("gpipe", 16, false), 16);
  EXPECT_EQ(kept("1f1b", 8, false), 4);
  EXPECT_EQ(kept("1f1b", 16, false), 4);
  EXPECT_EQ(kept("1f1b", 16, true), 1);  // that of the running backward: it reads no inputs
}

}  // namespace
}  // namespace pipelab
