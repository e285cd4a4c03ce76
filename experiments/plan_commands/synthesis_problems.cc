#include "experiments/plan_commands/synthesis_problems.h"

#include <algorithm>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/simulate/decimal.h"
#include "experiments/simulate/simulated_run.h"
#include "experiments/simulate/user_file.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/synthesis/stage_times.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, memory);  // plan_problem_flags.cc
ABSL_FLAG(std::string, times, "",
          "JSON file with the times of stages, or the Chrome trace of a run (docs/synthesis.md)");

namespace pipelab {
namespace {

// Equal parts, as simulate has them.
void DivideIntoSlices(int slices, CostTable* costs) {
  SliceCosts part = {costs->stages, costs->edge_bytes};
  for (StageCost& stage : part.stages) {
    for (Nanoseconds* time :
         {&stage.forward, &stage.backward_input, &stage.backward_weight, &stage.recompute}) {
      *time = Nanoseconds(time->value() / slices);
    }
    for (Bytes* bytes : stage.memory.Activations()) *bytes = Bytes(bytes->value() / slices);
  }
  for (Bytes& bytes : part.edge_bytes) bytes = Bytes(bytes.value() / slices);
  costs->slices.assign(slices, part);
}

// The costs of the file's stages over a chain.
absl::StatusOr<CostTable> CostsOfFile(const std::string& file, const StageTimes& times,
                                      const Schedule& schedule) {
  if (times.stages() != schedule.num_stages()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--times=", file, ": has ", times.stages(),
                     " stages; the configuration has P x V = ", schedule.num_stages()));
  }
  CostTable costs = CostTable::Unit(schedule);
  costs.hop_latency = times.hop;
  if (times.slices > 1) DivideIntoSlices(times.slices, &costs);
  for (int part = 0; part < times.stages() * times.slices; ++part) {
    const int s = part / times.slices;
    StageCost& stage =
        times.slices > 1 ? costs.slices[part % times.slices].stages[s] : costs.stages[s];
    stage.forward = stage.recompute = times.forward[part];
    stage.backward_input = times.backward_input[part];
    stage.backward_weight = times.backward_weight[part];
    if (times.kept.empty()) continue;
    stage.memory = StageMemory();
    stage.memory.kept = stage.memory.forward_peak = times.kept[part];
    if (!times.kept_for_weight.empty()) stage.memory.kept_for_weight = times.kept_for_weight[part];
    if (!times.state.empty()) costs.stages[s].memory.state = times.state[s];
  }
  return costs;
}

Schedule EmptyChain(int devices, int micro_batches, int slices,
                    const std::vector<int>& device_of_stage) {
  Schedule schedule;
  schedule.stages = StageGraph::Chain(static_cast<int>(device_of_stage.size()));
  schedule.placement = Placement::Single(device_of_stage, devices, micro_batches);
  schedule.num_micro_batches = micro_batches;
  schedule.num_slices = slices;
  schedule.order.resize(devices);
  return schedule;
}

// What a problem is called, and how it is divided.
struct Cut {
  std::string name;
  std::vector<int> device_of_stage;
  int slices;
};

// With from `least` to `most` slices.
std::vector<Cut> CutsOf(int devices, int virtual_stages, bool placement, int least, int most) {
  std::vector<Cut> cuts;
  for (int slices = least; slices <= most; slices *= 2) {
    const std::string in = slices == 1 ? "" : absl::StrCat(", ", slices, " slices");
    cuts.push_back({absl::StrCat("looped V=", virtual_stages, in),
                    LoopedDevices(devices, virtual_stages), slices});
    if (virtual_stages == 1 || !placement) continue;
    cuts.push_back({absl::StrCat("zigzag V=", virtual_stages, in),
                    ZigZagDevices(devices, virtual_stages), slices});
  }
  return cuts;
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
    PIPELAB_ASSIGN_OR_RETURN(of_file,
                             FaultOfFile(ParseStageTimes(text, absl::StrCat("--times=", file))));
    if (config.virtual_stages == 0 && of_file.stages() % config.pipeline == 0) {
      stages = of_file.stages();
    }
  }
  const int P = config.pipeline, V = std::max(1, stages / P);
  // Activations are counted in as many parts as there are slices at most, and times are multiples
  // of these where that is in our hands.
  const SimulatedTimes flags = TimesFromFlags();
  const bool counted = file.empty() ? !flags.has_bytes() : of_file.kept.empty();
  const int least = of_file.slices, most = std::max(least, least > 1 ? 1 : options.most_slices);
  const Bytes memory = options.limits.memory * (counted ? most : 1);
  GivenProblems given;
  for (const auto& [name, devices, slices] : CutsOf(P, V, options.placement, least, most)) {
    const Schedule chain = EmptyChain(P, config.micro_batches, most, devices);
    CostTable costs;
    if (file.empty()) {
      Program program;
      program.schedule = chain;
      PIPELAB_ASSIGN_OR_RETURN(const SimulatedCosts paper, MakeSimulatedCosts(program, flags));
      costs = paper.costs;
      given.nanoseconds_per_unit = paper.nanoseconds_per_unit;
      given.unit.clear();
    } else {
      PIPELAB_ASSIGN_OR_RETURN(costs, CostsOfFile(file, of_file, chain));
    }
    if (slices > 1 && costs.slices.empty()) DivideIntoSlices(slices, &costs);
    if (!options.limits.speeds.empty()) costs.device_speed = options.limits.speeds;
    for (const bool split : {true, false}) {
      if (split && (!options.split_backward || of_file.whole_backward)) continue;
      if (!split && options.split_backward && !of_file.whole_backward) continue;
      PIPELAB_ASSIGN_OR_RETURN(
          SynthesisProblem p,
          ProblemOfCosts(costs, chain.stages, devices, P, config.micro_batches, 1,
                         std::vector<bool>(devices.size(), config.recompute == Recompute::kFull),
                         split));
      if (memory > Bytes(0)) {
        p.limits.free.assign(P, memory);
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
