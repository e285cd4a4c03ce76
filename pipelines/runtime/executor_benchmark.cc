// What the runtime costs: 4 in-process devices, stages that compute nothing, tensors of one float,
// tracing on. Wall time of a step divided by its compute actions, for each scheme.
//
//   bazel run //pipelines/runtime:executor_benchmark
//
// The counter us_per_action must stay at or below 5. cpu_us_per_action is the processor time of all
// threads, which other programs on the machine disturb less.
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/arena.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/runtime/stage_module.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/clocks.h"

namespace pipelab {
namespace {

constexpr int kDevices = 4;
constexpr int kMicroBatches = 64;

// A stage of a chain without layers.
class EmptyStage : public StageModule {
 public:
  EmptyStage(Arena* arena, bool first, bool last) : arena_(arena), first_(first), last_(last) {}

  absl::StatusOr<std::vector<Tensor>> Forward(const Action&, std::vector<Tensor>, bool) override {
    return last_ ? std::vector<Tensor>() : OneFloat();
  }
  absl::Status Recompute(const Action&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<Tensor>> Backward(const Action&, std::vector<Tensor>) override {
    return first_ ? std::vector<Tensor>() : OneFloat();
  }
  absl::Status BackwardWeight(const Action&) override { return absl::OkStatus(); }
  absl::Status Step(const Action&) override { return absl::OkStatus(); }
  TensorSpec InputSpec(int, int) const override { return {DataType::kFloat32, {1}}; }
  TensorSpec OutputSpec(int, int) const override { return {DataType::kFloat32, {1}}; }
  absl::StatusOr<Tensor> Gradients(absl::string_view) override {
    return arena_->Zeros(DataType::kFloat32, {1}, MemoryKind::kGradient);
  }

 private:
  std::vector<Tensor> OneFloat() {
    std::vector<Tensor> tensors;
    tensors.push_back(arena_->Allocate(DataType::kFloat32, {1}, MemoryKind::kActivation));
    return tensors;
  }

  Arena* const arena_;
  const bool first_, last_;
};

void BM_EmptyStages(benchmark::State& state, const std::string& scheme, bool trace) {
  const auto schedule = MakeSchedule(scheme, {.devices = kDevices, .micro_batches = kMicroBatches});
  if (!schedule.ok()) return state.SkipWithError(std::string(schedule.status().message()).c_str());
  const Program program = *Lower(*schedule, {});
  std::deque<Arena> arenas(kDevices);
  std::vector<std::unique_ptr<EmptyStage>> stages;
  auto ranks = MakeInProcessCommunicators(kDevices, {});
  std::vector<DeviceSetup> devices(kDevices);
  const Placement& placement = program.schedule.placement;
  for (int d = 0; d < kDevices; ++d) {
    devices[d].arena = &arenas[d];
    devices[d].communicator = std::move(ranks[d]);
    devices[d].modules.resize(placement.num_replicas());
    for (int r = 0; r < placement.num_replicas(); ++r) {
      for (int s = 0; s < program.schedule.num_stages(); ++s) {
        const bool holds = placement.groups[r][s][0] == d;
        if (holds) {
          stages.push_back(std::make_unique<EmptyStage>(&arenas[d], s == 0,
                                                        s + 1 == program.schedule.num_stages()));
        }
        devices[d].modules[r].push_back(holds ? stages.back().get() : nullptr);
      }
    }
  }
  ExecutorOptions options;
  options.trace = trace;
  auto executor = Executor::Create(&program, std::move(devices), options);
  if (!executor.ok()) return state.SkipWithError(std::string(executor.status().message()).c_str());

  int64_t actions = 0;
  for (const auto& list : program.schedule.order) actions += static_cast<int64_t>(list.size());
  double wall_ns = 0, cpu_ns = 0;
  for (auto _ : state) {
    const int64_t wall = WallNs(), cpu = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
    const auto step = (*executor)->RunStep();
    wall_ns += static_cast<double>(WallNs() - wall);
    cpu_ns += static_cast<double>(ClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    if (!step.ok()) return state.SkipWithError(std::string(step.status().message()).c_str());
  }
  const double n = static_cast<double>(actions) * static_cast<double>(state.iterations());
  state.counters["actions"] = static_cast<double>(actions);
  state.counters["us_per_action"] = wall_ns * 1e-3 / n;
  state.counters["cpu_us_per_action"] = cpu_ns * 1e-3 / n;
}

void RegisterAll() {
  for (const Scheme& scheme : Catalog()) {
    const std::string name(scheme.name);
    for (bool trace : {true, false}) {
      benchmark::RegisterBenchmark(("EmptyStages/" + name + (trace ? "" : "/no_trace")).c_str(),
                                   BM_EmptyStages, name, trace)
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond)
          ->MinWarmUpTime(0.1);
    }
  }
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  pipelab::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
