// A step's stages as a problem.
#include "pipelines/synthesis/step_problem.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/order_memory.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kName[] = "synthesized";

// Some valid order, to price the placement with.
Schedule AnyOrder(const StepConfig& c, const std::vector<int>& device_of_stage,
                  const std::vector<bool>& recomputed, int slices) {
  Schedule schedule;
  schedule.name = kName;
  const int stages = static_cast<int>(device_of_stage.size());
  schedule.stages = StageGraph::Chain(stages);
  schedule.placement = Placement::Single(device_of_stage, c.pipeline, c.micro_batches);
  schedule.num_micro_batches = c.micro_batches;
  schedule.num_slices = slices;
  schedule.order.resize(c.pipeline);
  const auto add = [&](Action pass, int slice) {
    pass.slice = static_cast<int16_t>(slice);
    schedule.order[device_of_stage[pass.stage]].push_back(pass);
  };
  for (int s = 0; s < stages; ++s) {
    for (int m = 0; m < c.micro_batches; ++m) {
      for (int slice = 0; slice < slices; ++slice) add(Forward(s, m), slice);
    }
  }
  for (int s = stages - 1; s >= 0; --s) {
    for (int m = 0; m < c.micro_batches; ++m) {
      for (int slice = slices - 1; slice >= 0; --slice) add(Backward(s, m), slice);
    }
  }
  if (!recomputed.empty()) InsertRecompute(&schedule, recomputed);
  return schedule;
}

absl::StatusOr<Step> StepOf(StepCache* cache, StepConfig config, const Schedule& schedule,
                            const std::vector<double>& speeds) {
  cache->AddSchedule(kName, {schedule});
  config.scheme = kName;
  config.virtual_stages = 0;
  PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(cache, config));
  for (const double speed : speeds) {
    for (int i = 0; i < step.members; ++i) step.costs.device_speed.push_back(speed);
  }
  return step;
}

// Between neighbours on two devices, with nothing else on the way.
int64_t HopOf(const CostTable& costs, int edge, int from, int to, int members) {
  const PathCost way = costs.PathBetween(from * members, to * members);
  Bytes least = costs.edge_bytes[edge];  // of the slices
  for (size_t k = 0; k < costs.slices.size(); ++k) {
    const Bytes own = costs.EdgeBytesOf(edge, static_cast<int>(k));
    least = k == 0 ? own : std::min(least, own);
  }
  const Bytes bytes(least.value() / members);
  const int64_t parts = costs.PartsOfMessage(bytes.value());
  return (way.latency + way.TransferTime(Bytes(bytes.value() / parts))).value();
}

}  // namespace

absl::StatusOr<SynthesisProblem> ProblemOfCosts(const CostTable& costs, const StageGraph& stages,
                                                std::vector<int> device_of_stage, int devices,
                                                int micro_batches, int members,
                                                std::vector<bool> recomputed, bool split_backward) {
  SynthesisProblem p;
  p.devices = devices;
  p.micro_batches = micro_batches;
  p.device_of_stage = std::move(device_of_stage);
  p.slices = std::max(1, static_cast<int>(costs.slices.size()));
  p.split_backward = split_backward;
  p.recomputed = std::move(recomputed);
  if (stages.num_stages() != p.stages()) {
    return absl::InvalidArgumentError(absl::StrCat("synthesize: times of ", stages.num_stages(),
                                                   " stages; the placement has ", p.stages()));
  }
  for (int part = 0; part < p.stages() * p.slices; ++part) {
    const int s = part / p.slices;
    const double speed =
        costs.device_speed.empty() ? 1 : costs.device_speed[p.device_of_stage[s] * members];
    const auto own = [speed](Nanoseconds time) {
      return static_cast<int64_t>(std::llround(static_cast<double>(time.value()) / speed));
    };
    const StageCost& cost = costs.StageOf(s, part % p.slices);
    p.lengths.forward.push_back(own(cost.forward));
    p.lengths.recompute.push_back(p.Recomputes(s) ? own(cost.recompute) : 0);
    p.lengths.backward_input.push_back(own(cost.backward_input));
    p.lengths.backward_weight.push_back(own(cost.backward_weight));
  }
  p.lengths.hop.assign(p.stages(), 0);
  // One time for each pair of devices, the least: what else there is only takes longer.
  std::map<std::pair<int, int>, int64_t> hops;
  std::vector<bool> feeds_next(p.stages(), false);
  for (size_t e = 0; e < stages.edges.size(); ++e) {
    const int from = stages.edges[e].from, to = stages.edges[e].to;
    if (to != from + 1) continue;
    feeds_next[from] = true;
    const int a = p.device_of_stage[from], b = p.device_of_stage[to];
    if (a == b) continue;
    const int64_t hop = std::min(HopOf(costs, static_cast<int>(e), a, b, members),
                                 HopOf(costs, static_cast<int>(e), b, a, members));
    const auto [found, is_new] = hops.insert({std::minmax(a, b), hop});
    if (!is_new) found->second = std::min(found->second, hop);
  }
  for (int s = 0; s + 1 < p.stages(); ++s) {
    if (!feeds_next[s]) {
      return absl::InvalidArgumentError(
          absl::StrCat("synthesize: stage ", s, " feeds no next stage; stages must be a chain"));
    }
    const auto found = hops.find(std::minmax(p.device_of_stage[s], p.device_of_stage[s + 1]));
    if (found != hops.end()) p.lengths.hop[s] = found->second;
  }
  p.limits = MemoryOfStages(stages, costs, p.recomputed, !split_backward);
  const bool to_host = costs.host_bandwidth > BytesPerSecond(0);
  for (int part = 0; part < p.stages() * p.slices && to_host; ++part) {
    const int s = part / p.slices, slice = part % p.slices;
    const StageMemory& memory = costs.StageOf(s, slice).memory;
    p.read_later.push_back(p.Recomputes(s) ? Bytes(0) : memory.kept_when_dropped);
    const auto moved = static_cast<double>(p.Moved(s, slice).value());
    p.host_copy.push_back(std::llround(moved / costs.host_bandwidth.value() * 1e9));
  }
  return p;
}

absl::StatusOr<SynthesisProblem> ProblemOfStep(StepCache* cache, const StepConfig& config,
                                               const std::vector<int>& device_of_stage,
                                               const std::vector<bool>& recomputed,
                                               bool split_backward, const StepLimits& limits,
                                               int slices) {
  PIPELAB_ASSIGN_OR_RETURN(
      const Step step,
      StepOf(cache, config, AnyOrder(config, device_of_stage, recomputed, slices), limits.speeds));
  PIPELAB_ASSIGN_OR_RETURN(
      SynthesisProblem p,
      ProblemOfCosts(step.costs, step.program.schedule.stages, device_of_stage, config.pipeline,
                     config.micro_batches, step.members, recomputed, split_backward));
  const Bytes memory = limits.memory == Bytes(0) ? step.device_memory : limits.memory;
  if (memory == Bytes(0)) return p;
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, SimulateTotals(step.program, step.costs));
  for (int d = 0; d < config.pipeline; ++d) {
    p.limits.free.push_back(memory - trace.devices[d * step.members].peak_state);
  }
  return p;
}

absl::StatusOr<StepPrediction> PredictOrder(StepCache* cache, const StepConfig& config,
                                            const Schedule& schedule,
                                            const std::vector<double>& speeds) {
  PIPELAB_ASSIGN_OR_RETURN(Step step, StepOf(cache, config, schedule, speeds));
  return Predict(std::move(step));
}

SynthesisProblem WithoutHeld(SynthesisProblem p) {
  std::vector<Bytes> largest(p.devices);
  for (int part = 0; part < p.stages() * p.slices; ++part) {
    const int s = part / p.slices;
    const Bytes moved = p.Moved(s, part % p.slices);
    Bytes& most = largest[p.device_of_stage[s]];
    most = std::max(most, moved);
    p.limits.forward[part].change = p.limits.forward[part].change - moved;
  }
  for (int d = 0; d < p.devices; ++d) p.limits.free[d] = p.limits.free[d] - largest[d] - largest[d];
  return p;
}

std::vector<bool> StagesThatMakeRoom(const SynthesisProblem& none, const SynthesisProblem& all,
                                     int more) {
  std::vector<bool> chosen(none.stages(), false);
  if (none.limits.free.empty()) return chosen;
  const int slices = none.slices;
  int64_t round = 1;  // of the busiest device, per slice
  for (int d = 0; d < none.devices; ++d) round = std::max(round, none.Work(d) / none.units());
  const auto mean = [&](Symbol symbol) {  // of slices
    int64_t length = 0;
    for (int slice = 0; slice < slices; ++slice) length += none.Length(symbol, slice);
    return length / slices;
  };
  std::vector<int64_t> in_flight(none.stages());  // slices
  int64_t back = 0;                               // from the end of F to the gradient's arrival
  for (int s = none.stages() - 1; s >= 0; --s) {
    back += mean(SymbolOf(s, kPassF)) + mean(SymbolOf(s, kPassI));
    const int64_t held = back + (none.split_backward ? mean(SymbolOf(s, kPassW)) : 0);
    // The first that goes back is a micro-batch's last.
    in_flight[s] = (held + round - 1) / round + slices - 1 + more * slices;
    in_flight[s] = std::min<int64_t>(none.units(), in_flight[s]);
    if (s > 0) back += 2 * none.Hop(s - 1);
  }
  const auto kept = [&](const SynthesisProblem& p, int s) {
    int64_t bytes = 0;
    for (int slice = 0; slice < slices; ++slice) {
      bytes += p.Use(SymbolOf(s, kPassF), slice).change.value();
    }
    return in_flight[s] * bytes / slices;
  };
  for (int d = 0; d < none.devices; ++d) {
    std::vector<int> own;
    int64_t held = 0, passing = 0;
    for (int s = 0; s < none.stages(); ++s) {
      if (none.device_of_stage[s] != d) continue;
      own.push_back(s);
      held += kept(none, s);
      for (int slice = 0; slice < slices; ++slice) {
        passing = std::max(passing, none.Use(SymbolOf(s, kPassI), slice).peak.value());
      }
    }
    std::stable_sort(own.begin(), own.end(), [&](int a, int b) {
      return kept(none, a) - kept(all, a) > kept(none, b) - kept(all, b);
    });
    if (held + passing <= none.limits.free[d].value()) continue;
    for (const int s : own) {
      if (held + passing <= all.limits.free[d].value()) break;
      chosen[s] = true;
      held -= kept(none, s) - kept(all, s);
    }
  }
  return chosen;
}

}  // namespace pipelab
