// The steps from a scheme's name to a trace, on schedules of a million compute actions, on one
// core.
//
//   bazel run //pipelines/sim:simulate_benchmark
#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "glog/logging.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {
namespace {

struct Case {
  const char* scheme;
  SchemeParams params;
};

Case CaseOf(const benchmark::State& state) {
  SchemeParams p;
  p.devices = 128;
  p.micro_batches = 1024;
  p.virtual_stages = 4;  // 1,048,576 actions
  switch (state.range(0)) {
    case 0:
      p.virtual_stages = 1;
      p.micro_batches = 3907;  // 1,000,192
      return {"1f1b", p};
    case 1:
      return {"interleaved", p};
    case 2:
      return {"breadth_first", p};
    case 4:  // 32,768: what tools/pytorch/lowering_speed.py compares
      return {"interleaved", SchemeParams{8, 1024, 2}};
    default:
      p.virtual_stages = 1;  // 393,216
      return {"zb_h1", p};
  }
}

Schedule Generate(const Case& c) {
  absl::StatusOr<Schedule> s = MakeSchedule(c.scheme, c.params);
  CHECK(s.ok()) << s.status();
  return *std::move(s);
}

Program LowerOrDie(Schedule s) {
  absl::StatusOr<Program> p = Lower(std::move(s), {});
  CHECK(p.ok()) << p.status();
  return *std::move(p);
}

void Report(benchmark::State* state, const Case& c, int64_t items) {
  state->SetLabel(c.scheme);
  state->SetItemsProcessed(state->iterations() * items);
}

int64_t NumActions(const Schedule& s) {
  int64_t n = 0;
  for (const auto& list : s.order) n += static_cast<int64_t>(list.size());
  return n;
}

int64_t NumInstructions(const Program& p) {
  int64_t n = 0;
  for (const auto& list : p.instructions) n += static_cast<int64_t>(list.size());
  return n;
}

void BM_Generate(benchmark::State& state) {
  const Case c = CaseOf(state);
  int64_t n = 0;
  for (auto _ : state) n = NumActions(Generate(c));
  Report(&state, c, n);
}

void BM_Validate(benchmark::State& state) {
  const Case c = CaseOf(state);
  const Schedule s = Generate(c);
  for (auto _ : state) CHECK(Validate(s).ok());
  Report(&state, c, NumActions(s));
}

void BM_Lower(benchmark::State& state) {
  const Case c = CaseOf(state);
  const Schedule s = Generate(c);
  int64_t n = 0;
  for (auto _ : state) n = NumInstructions(LowerOrDie(s));
  Report(&state, c, n);
}

// Unit times, and hops that take time.
CostTable CostsOf(const Program& p) {
  CostTable costs = CostTable::Unit(p.schedule);
  costs.hop_latency = Microseconds(10);
  costs.bandwidth = BytesPerSecond(1e9);
  for (Bytes& b : costs.edge_bytes) b = Bytes(1000);
  return costs;
}

void BM_Simulate(benchmark::State& state) {
  const Case c = CaseOf(state);
  const Program p = LowerOrDie(Generate(c));
  const CostTable costs = CostsOf(p);
  for (auto _ : state) {
    absl::StatusOr<Trace> trace = Simulate(p, costs);
    CHECK(trace.ok()) << trace.status();
    benchmark::DoNotOptimize(trace->makespan);
  }
  Report(&state, c, NumInstructions(p));
}

// Nodes of eight devices that share an uplink: the crossings need events in the order of time.
void BM_SimulateSharedUplinks(benchmark::State& state) {
  const Case c = CaseOf(state);
  const Program p = LowerOrDie(Generate(c));
  CostTable costs = CostTable::Unit(p.schedule);
  const Link inside{"", Microseconds(10), BytesPerSecond(1e9)};
  const Link uplink{"", Microseconds(20), BytesPerSecond(1e6)};  // about a unit a message
  costs.network = SharedUplinks(c.params.devices, 8, inside, uplink);
  for (Bytes& b : costs.edge_bytes) b = Bytes(1000);
  for (auto _ : state) {
    absl::StatusOr<Trace> trace = Simulate(p, costs);
    CHECK(trace.ok()) << trace.status();
    benchmark::DoNotOptimize(trace->makespan);
  }
  Report(&state, c, NumInstructions(p));
}

// All of it (Lower validates): half a second at most.
void BM_GenerateToTrace(benchmark::State& state) {
  const Case c = CaseOf(state);
  for (auto _ : state) {
    const Program p = LowerOrDie(Generate(c));
    absl::StatusOr<Trace> trace = Simulate(p, CostsOf(p));
    CHECK(trace.ok()) << trace.status();
  }
  Report(&state, c, 1);
}

#define PIPELAB_BOTH_CASES(name) \
  BENCHMARK(name)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->MinTime(0.5)

PIPELAB_BOTH_CASES(BM_Generate);
PIPELAB_BOTH_CASES(BM_Validate);
PIPELAB_BOTH_CASES(BM_Lower);
BENCHMARK(BM_Lower)->Arg(4)->Unit(benchmark::kMillisecond)->MinTime(0.5);
PIPELAB_BOTH_CASES(BM_Simulate);
PIPELAB_BOTH_CASES(BM_SimulateSharedUplinks);
BENCHMARK(BM_GenerateToTrace)->DenseRange(0, 3)->Unit(benchmark::kMillisecond)->MinTime(0.5);

}  // namespace
}  // namespace pipelab
