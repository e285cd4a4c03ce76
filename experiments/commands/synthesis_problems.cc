#include "experiments/commands/synthesis_problems.h"

#include <algorithm>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/decimal.h"
#include "experiments/commands/simulated_run.h"
#include "experiments/commands/user_file.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/synthesis/stage_times.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, memory);  // plan_problem_flags.cc
ABSL_FLAG(std::string, times, "",
          "JSON file with the times of stages, or the Chrome trace of a run (docs/synthesis.md)");

namespace pipelab {
namespace {

// The costs of the file's stages over a chain.
absl::StatusOr<CostTable> CostsOfFile(const std::string& file, const StageTimes& times,
                                      const Schedule& schedule) {
  if (times.stages() != schedule.num_stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--times=", file, ": has ", times.stages(),
                     " stages; the configuration has P x V = ", schedule.num_stages()));
  }
  CostTable costs = CostTable::Unit(schedule);
  for (int s = 0; s < times.stages(); ++s) {
    StageCost& stage = costs.stages[s];
    stage.forward = stage.recompute = times.forward[s];
    stage.backward_input = times.backward_input[s];
    stage.backward_weight = times.backward_weight[s];
    if (times.kept.empty()) continue;
    stage.memory = StageMemory();
    stage.memory.kept = stage.memory.forward_peak = times.kept[s];
    if (!times.kept_for_weight.empty()) stage.memory.kept_for_weight = times.kept_for_weight[s];
    if (!times.state.empty()) stage.memory.state = times.state[s];
  }
  costs.hop_latency = times.hop;
  return costs;
}

Schedule EmptyChain(int devices, int micro_batches, const std::vector<int>& device_of_stage) {
  Schedule schedule;
  schedule.stages = StageGraph::Chain(static_cast<int>(device_of_stage.size()));
  schedule.placement = Placement::Single(device_of_stage, devices, micro_batches);
  schedule.num_micro_batches = micro_batches;
  schedule.order.resize(devices);
  return schedule;
}

}  // namespace

absl::StatusOr<Bytes> SynthesisMemory() {
  const std::string text = absl::GetFlag(FLAGS_memory);
  if (text.empty()) return Bytes(0);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<Bytes> bytes,
                           ParseByteCounts("--memory", text, 1, ""));
  if (bytes[0] > Bytes(0)) return bytes[0];
  return absl::InvalidArgumentError(absl::StrCat("--memory=", text, ": must be above 0"));
}

absl::StatusOr<GivenProblems> ProblemsOfTimes(const StepConfig& config,
                                              const StepSynthesisOptions& options) {
  const std::string file = absl::GetFlag(FLAGS_times);
  StageTimes of_file;
  PIPELAB_ASSIGN_OR_RETURN(int stages, NumStages(config.scheme, SchemeSizes(config)));
  if (!file.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--times", file));
    absl::StatusOr<StageTimes> read = ParseStageTimes(text, absl::StrCat("--times=", file));
    if (!read.ok()) return FaultOfFile(read.status());
    of_file = *std::move(read);
    if (config.virtual_stages == 0 && of_file.stages() % config.pipeline == 0) {
      stages = of_file.stages();
    }
  }
  const int P = config.pipeline, V = std::max(1, stages / P);
  std::vector<std::pair<std::string, std::vector<int>>> placements = {
      {absl::StrCat("looped V=", V), LoopedDevices(P, V)}};
  if (V > 1 && options.placement) {
    placements.push_back({absl::StrCat("zigzag V=", V), ZigZagDevices(P, V)});
  }
  GivenProblems given;
  for (const auto& [name, devices] : placements) {
    const Schedule chain = EmptyChain(P, config.micro_batches, devices);
    CostTable costs;
    if (file.empty()) {
      Program program;
      program.schedule = chain;
      PIPELAB_ASSIGN_OR_RETURN(const SimulatedCosts paper,
                               MakeSimulatedCosts(program, TimesFromFlags()));
      costs = paper.costs;
      given.nanoseconds_per_unit = paper.nanoseconds_per_unit;
      given.unit.clear();
    } else {
      PIPELAB_ASSIGN_OR_RETURN(costs, CostsOfFile(file, of_file, chain));
    }
    if (!options.limits.speeds.empty()) costs.device_speed = options.limits.speeds;
    for (const bool split : {true, false}) {
      if (split && (!options.split_backward || of_file.whole_backward)) continue;
      if (!split && options.split_backward && !of_file.whole_backward) continue;
      PIPELAB_ASSIGN_OR_RETURN(
          SynthesisProblem p,
          ProblemOfCosts(costs, chain.stages, devices, P, config.micro_batches, 1,
                         std::vector<bool>(devices.size(), config.recompute == Recompute::kFull),
                         split));
      if (options.limits.memory > Bytes(0)) {
        p.limits.free.assign(P, options.limits.memory);
        for (int s = 0; s < p.stages(); ++s) {
          p.limits.free[devices[s]] = p.limits.free[devices[s]] - costs.stages[s].memory.state;
        }
      }
      given.problems.push_back(
          {absl::StrCat(name, split ? "" : ", whole backwards"), std::move(p)});
    }
  }
  return given;
}

}  // namespace pipelab
