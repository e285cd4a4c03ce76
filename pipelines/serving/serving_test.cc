#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/graph/layer_spec.h"
#include "models/graph/token_run.h"
#include "models/graph/token_slice.h"
#include "models/zoo/gpt.h"
#include "pipelines/analysis/arrivals.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/serving/pass_costs.h"
#include "pipelines/serving/pass_plan.h"
#include "pipelines/serving/serving_figures.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ServingOptions Sizes(int devices, int groups, int slots, int64_t chunk = 0) {
  ServingOptions options;
  options.devices = devices;
  options.groups = groups;
  options.slots = slots;
  options.chunk = chunk;
  options.cache_tokens = 64;
  return options;
}

// Odd times, the longer the more rows and the more tokens in front of them.
ServingTimes OddTimes() {
  ServingTimes times;
  times.compute = [](int stage, const std::vector<TokenRun>& runs) {
    int64_t time = 1000 + 137 * stage;
    for (const TokenRun& run : runs) time += 31 * run.count + run.count * run.end();
    return Nanoseconds(time);
  };
  times.transfer = [](int stage, const std::vector<TokenRun>& runs) {
    return Nanoseconds(RowsOf(runs) * (7 + stage));
  };
  times.latency = Nanoseconds(53);
  return times;
}

std::vector<Request> SomeRequests(int count, uint64_t seed) {
  const CounterRng rng(seed, "requests");
  uint64_t n = 0;
  const std::vector<Nanoseconds> arrivals = RandomArrivals(count, 2e5, seed);
  std::vector<Request> requests;
  for (int r = 0; r < count; ++r) {
    Request request;
    request.arrival = arrivals[r];
    request.prompt = 1 + static_cast<int64_t>(rng.Below(n++, 30));
    request.output = 1 + static_cast<int64_t>(rng.Below(n++, 30));
    requests.push_back(request);
  }
  return requests;
}

// The costs of a plan by `times`, for the simulator.
CostTable TableOf(const PassPlan& plan, const ServingTimes& times) {
  CostTable table;
  const int devices = plan.options.devices;
  table.of_passes = true;
  table.stages.resize(devices);
  table.edge_bytes.assign(devices, Bytes(0));
  table.hop_latency = times.latency;
  table.bandwidth = BytesPerSecond(1e9);  // a byte a nanosecond
  for (const Pass& pass : plan.passes) {
    SliceCosts& of_pass = table.slices.emplace_back();
    for (int s = 0; s < devices; ++s) {
      of_pass.stages.emplace_back().forward = times.compute(s, pass.runs);
      of_pass.edge_bytes.push_back(Bytes(times.transfer(s, pass.runs).value()));
    }
    table.releases.push_back(pass.release);
  }
  return table;
}

// Every token of every request once and in order, in a slot of its own.
void CheckPlan(const PassPlan& plan) {
  std::vector<int64_t> done(plan.requests.size(), 0);
  std::map<std::pair<int, int>, int> holder;  // of a slot
  std::vector<int32_t> newest(plan.options.groups, -1);
  int waiting = 0;
  for (size_t m = 0; m < plan.passes.size(); ++m) {
    const Pass& pass = plan.passes[m];
    ASSERT_FALSE(pass.runs.empty());
    bool takes = false;
    int64_t chunks = 0;
    for (size_t i = 0; i < pass.runs.size(); ++i) {
      const TokenRun& run = pass.runs[i];
      const int32_t r = pass.requests[i];
      const Request& request = plan.requests[r];
      ASSERT_LT(run.slot, plan.options.slots);
      int& has = holder.emplace(std::pair(pass.group, run.slot), -1).first->second;
      if (has != r) {
        ASSERT_TRUE(has < 0 ||
                    done[has] == plan.requests[has].prompt + plan.requests[has].output - 1);
        ASSERT_EQ(done[r], 0);
        ASSERT_GE(pass.begins[0], request.arrival);
        has = r;
        ++waiting;
      }
      ASSERT_EQ(run.first, done[r]);
      done[r] = run.end();
      ASSERT_EQ(run.predicts, run.end() >= request.prompt);
      if (run.first >= request.prompt) {
        ASSERT_EQ(run.count, 1);
        takes = true;
      } else {
        ASSERT_LE(run.end(), request.prompt);
        chunks += run.count;
      }
    }
    if (plan.options.chunk > 0) {
      ASSERT_LE(chunks, plan.options.chunk);
    }
    ASSERT_EQ(pass.source, takes ? newest[pass.group] : -1);
    newest[pass.group] = static_cast<int32_t>(m);
  }
  ASSERT_EQ(waiting, static_cast<int>(plan.requests.size()));
  for (size_t r = 0; r < done.size(); ++r) {
    ASSERT_EQ(done[r], plan.requests[r].prompt + plan.requests[r].output - 1);
  }
}

TEST(PassPlan, EveryTokenOnceAndTheSimulatorsTimes) {
  const ServingTimes times = OddTimes();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    for (const ServingOptions& sizes : {Sizes(1, 1, 1), Sizes(1, 3, 2, 4), Sizes(2, 2, 3),
                                        Sizes(3, 2, 2, 8), Sizes(4, 8, 1, 1), Sizes(4, 4, 4)}) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan plan,
                                   PlanPasses(SomeRequests(25, seed), sizes, times));
      CheckPlan(plan);
      if (HasFatalFailure()) return;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(PassSchedule(plan), {}));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, TableOf(plan, times)));
      for (size_t d = 0; d < trace.devices.size(); ++d) {
        for (const ExecutedInstruction& span : SpansOf(program, trace, d)) {
          if (span.op != OpCode::kCompute) continue;
          const Pass& pass = plan.passes[span.action.micro_batch];
          ASSERT_EQ(span.begin_ns, pass.begins[span.action.stage].value()) << seed;
          ASSERT_EQ(span.end_ns, pass.ends[span.action.stage].value()) << seed;
        }
      }
    }
  }
}

// Requests alike: the catalogue's schemes, pass by pass.
TEST(PassPlan, IsTheCataloguesScheme) {
  for (const int devices : {1, 2, 4}) {
    for (const int groups : {1, 2, 4}) {
      std::vector<Request> requests(groups);
      for (Request& r : requests) r.prompt = r.output = 6;
      for (const int64_t chunk : {0, 2}) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(
            const PassPlan plan,
            PlanPasses(requests, Sizes(devices, groups, 1, chunk), ServingTimes::Unit()));
        SchemeParams params{devices, static_cast<int>(plan.passes.size())};
        params.group_size = groups;
        if (chunk > 0) params.slices = 3;
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule scheme,
                                     MakeSchedule(chunk > 0 ? "prefill_decode" : "decode", params));
        const Schedule made = PassSchedule(plan);
        EXPECT_EQ(made.order, scheme.order);
        EXPECT_EQ(made.name, scheme.name);
        if (chunk == 0) {
          EXPECT_EQ(made.carried, scheme.carried) << devices << " " << groups;
        }
      }
    }
  }
}

// As many groups as stages: n passes take n + P - 1. One request alone has one stage at work.
TEST(PassPlan, ClosedForms) {
  for (const int p : {1, 2, 4, 8}) {
    std::vector<Request> requests(p);
    for (Request& r : requests) r.output = 20;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan full,
                                 PlanPasses(requests, Sizes(p, p, 1), ServingTimes::Unit()));
    ASSERT_EQ(full.passes.size(), size_t(20 * p));
    EXPECT_EQ(full.passes.back().ends.back().value(), 20 * p + p - 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan alone,
                                 PlanPasses({requests[0]}, Sizes(p, p, 1), ServingTimes::Unit()));
    EXPECT_EQ(alone.passes.back().ends.back().value(), 20 * p);
  }
}

// A chunk shrinks as the prompt in front of it grows, so that no pass takes longer than the first.
TEST(PassPlan, ChunksShrink) {
  ServingOptions sizes = Sizes(2, 1, 1, 16);
  sizes.cache_tokens = 400;
  Request request;
  request.prompt = 400;
  const ServingTimes times = OddTimes();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan plan, PlanPasses({request}, sizes, times));
  const Nanoseconds longest = times.compute(1, plan.passes[0].runs);
  for (size_t m = 1; m < plan.passes.size(); ++m) {
    EXPECT_LE(plan.passes[m].runs[0].count, plan.passes[m - 1].runs[0].count);
    EXPECT_LE(times.compute(1, plan.passes[m].runs), longest);
    // One token more would not fit, but for the prompt's last chunk.
    TokenRun more = plan.passes[m].runs[0];
    if (more.end() < request.prompt && more.count < sizes.chunk) {
      ++more.count;
      EXPECT_GT(times.compute(1, {more}), longest);
    }
  }
  EXPECT_LT(plan.passes[plan.passes.size() - 2].runs[0].count, 8);
}

TEST(PassPlan, Errors) {
  const auto error = [](std::vector<Request> requests, const ServingOptions& sizes) {
    const auto plan = PlanPasses(std::move(requests), sizes, ServingTimes::Unit());
    return std::string(plan.status().message());
  };
  Request long_one;
  long_one.prompt = 60;
  long_one.output = 6;
  EXPECT_EQ(error({Request(), long_one}, Sizes(2, 2, 1)),
            "--cache=64: request 1 needs 65 (a prompt of 60, an output of 6 less its last "
            "token)");
  ServingOptions short_context = Sizes(2, 2, 1);
  short_context.context = 50;
  EXPECT_EQ(error({long_one}, short_context),
            "request 0: a prompt of 60 tokens: the model's context has 50");
  long_one.prompt = 48;
  EXPECT_EQ(error({long_one}, short_context),
            "request 0: a prompt of 48 and an output of 6 tokens need 53 of context: the model's "
            "has 50");
  EXPECT_EQ(error({Request()}, Sizes(2, 0, 1)), "--groups=0: must be at least 1");
  EXPECT_EQ(error({Request()}, Sizes(2, 1, 1, -1)),
            "--chunk=-1: must be at least 0, which is whole prompts");
  Request late;
  late.arrival = Nanoseconds(5);
  EXPECT_EQ(error({late, Request()}, Sizes(2, 1, 1)),
            "request 1: arrives at 0 ns: must not be before 0 or the request before");
}

// A group takes none while it has some; continuous batching takes the next one into its pass.
TEST(PassPlan, StaticBatchesBeginTogether) {
  std::vector<Request> requests(3);
  requests[0].output = 5;
  ServingOptions sizes = Sizes(1, 1, 2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan more,
                               PlanPasses(requests, sizes, ServingTimes::Unit()));
  EXPECT_EQ(more.passes.size(), 5u);
  EXPECT_EQ(more.passes[1].requests, (std::vector<int32_t>{0, 2}));
  sizes.continuous = false;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan fixed,
                               PlanPasses(requests, sizes, ServingTimes::Unit()));
  EXPECT_EQ(fixed.passes.size(), 6u);
  EXPECT_EQ(fixed.passes[5].requests, (std::vector<int32_t>{2}));
  CheckPlan(fixed);
}

// Requests spread over groups before they fill one.
TEST(PassPlan, GroupsShareWhatWaits) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const PassPlan plan,
      PlanPasses(std::vector<Request>(4), Sizes(4, 4, 4), ServingTimes::Unit()));
  ASSERT_EQ(plan.passes.size(), 4u);
  for (int m = 0; m < 4; ++m) EXPECT_EQ(plan.passes[m].group, m);
}

TEST(PassPlan, TenThousandRequests) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan plan,
                               PlanPasses(SomeRequests(10000, 1), Sizes(8, 8, 16, 16), OddTimes()));
  CheckPlan(plan);
}

TEST(ServingFigures, OfAPlanByHand) {
  // Two stages, a request of 3 tokens: tokens at 2, 4, 6; the other one waits for the slot.
  std::vector<Request> requests(2);
  requests[0].output = 3;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan plan,
                               PlanPasses(requests, Sizes(2, 1, 1), ServingTimes::Unit()));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(PassSchedule(plan), {}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, Simulate(program, TableOf(plan, ServingTimes::Unit())));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ServingFigures f, FiguresOf(plan, program, trace));
  EXPECT_EQ(f.tokens, 4);
  EXPECT_NEAR(f.tokens_per_second, 4 / 7e-9, 1);
  EXPECT_EQ(f.first_token.median.value(), 2);
  EXPECT_EQ(f.first_token.longest.value(), 7);
  EXPECT_EQ(f.between_tokens.longest.value(), 2);
  EXPECT_EQ(f.latency.median.value(), 6);
  EXPECT_EQ(f.latency.p99.value(), 7);
  EXPECT_EQ(f.queueing.longest.value(), 5);
  EXPECT_NEAR(f.device_use, 8.0 / 14, 1e-9);
  trace.devices[0].spans.clear();
  EXPECT_THAT(FiguresOf(plan, program, trace).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("lacks pass 0 of")));
}

Machine LawMachine() {
  Machine machine;
  machine.type = NumberType::kFp16;
  machine.device.name = "law";
  machine.device.peaks[NumberType::kFp16] = {FlopsPerSecond(125e12), "data sheet"};
  machine.device.memory_bandwidth = {BytesPerSecond(600e9), "data sheet"};
  const EfficiencyCurve all{{{1, 1}}};
  for (const OperationKind kind : {OperationKind::kMatmul, OperationKind::kAttention}) {
    machine.device.arithmetic[kind] = {all, "the law's"};
  }
  machine.device.memory_efficiency = {all, "the law's"};
  return machine;
}

// A pass reads weights once for all its runs, and 4-bit ones take their share of the bytes.
TEST(ServingCosts, TheLaw) {
  GptConfig config = LlamaConfig(4, 4096, 32, 11008, 4096, 32000);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildGpt(config));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition,
                               MakePartition(graph, std::vector<int>(graph.layers.size(), 0)));
  ServingCostOptions options;
  options.machine = LawMachine();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ServingCosts whole,
                               ServingCosts::Make(graph, partition, options));
  options.int4_group = 128;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ServingCosts packed,
                               ServingCosts::Make(graph, partition, options));
  const auto rows = [](int count) {
    std::vector<TokenRun> runs;
    for (int i = 0; i < count; ++i) runs.push_back({i, 0, 1, false});
    return runs;
  };
  const auto seconds = [&](const ServingCosts& costs, int count) {
    return static_cast<double>(costs.Compute(0, rows(count)).value()) * 1e-9;
  };
  const double weights = 4.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
  EXPECT_NEAR(seconds(whole, 1), 2 * weights / 600e9, 0.01 * seconds(whole, 1));
  EXPECT_NEAR(seconds(whole, 16), 2 * weights / 600e9, 0.05 * seconds(whole, 16));
  EXPECT_NEAR(seconds(whole, 1) / seconds(packed, 1), 3.88, 0.06);
  // At many rows flops rule, and 4 bits save nothing.
  EXPECT_NEAR(seconds(whole, 2048) / seconds(packed, 2048), 1, 0.02);
  EXPECT_EQ(whole.CacheBytes(0, Sizes(1, 2, 3)).value(), 4 * 2 * 4096 * 2 * 2 * 3 * 64);
}

// One prompt takes as long as the cost model says that the layers take for its tokens. Two prompts
// take less than twice that. A plan by these costs has the simulator's times.
TEST(ServingCosts, AreThoseOfLayers) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph,
                               BuildGpt(LlamaConfig(4, 256, 4, 688, 512, 1000)));
  ServingCostOptions options;
  options.machine = LawMachine();
  options.link = {Microseconds(2), BytesPerSecond(1e9)};
  const TokenRun run{0, 32, 16, false};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition partition,
                               CutForPass(graph, 3, options, {run}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ServingCosts costs,
                               ServingCosts::Make(graph, partition, options));
  Nanoseconds all;
  for (const LayerSpec& layer : graph.layers) {
    if (layer.output_shape.empty()) continue;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const LayerTimes times,
                                 TimesOf(layer, options.machine, 1, TokenSlice{32, 16}));
    all += times.forward;
  }
  Nanoseconds once, twice;
  for (int s = 0; s < 3; ++s) {
    once += costs.Compute(s, {run});
    twice += costs.Compute(s, {run, {1, 32, 16, false}});
  }
  EXPECT_EQ(once, all);
  EXPECT_LT(twice, 2 * once);
  ServingOptions sizes = Sizes(3, 2, 2, 8);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PassPlan plan,
                               PlanPasses(SomeRequests(30, 3), sizes, costs.Times()));
  CheckPlan(plan);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(PassSchedule(plan), {}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs.Table(plan)));
  EXPECT_EQ(trace.makespan, plan.passes.back().ends.back());
  for (int s = 0; s < 3; ++s) {
    EXPECT_EQ(trace.devices[s].peak_state, costs.WeightBytes(s) + costs.CacheBytes(s, sizes));
  }
}

TEST(ServingCosts, Errors) {
  ServingCostOptions options;
  options.machine = LawMachine();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph,
                               BuildGpt(LlamaConfig(2, 64, 4, 172, 32, 96)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition whole, MakeRangePartition(graph, {0}));
  options.machine.type = NumberType::kBf16;
  EXPECT_THAT(ServingCosts::Make(graph, whole, options).status(),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("layer \"")));
}

}  // namespace
}  // namespace pipelab
