#include "experiments/run/replayed_step.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "experiments/calibration/link_times.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Collectives in a pass of a stage.
struct Collectives {
  int64_t forward = 0, backward_input = 0, backward_weight = 0;

  int64_t Of(ActionKind kind) const {
    switch (kind) {
      case ActionKind::kForward:
      case ActionKind::kRecompute:
        return forward;
      case ActionKind::kBackward:
        return backward_input + backward_weight;
      case ActionKind::kBackwardInput:
        return backward_input;
      case ActionKind::kBackwardWeight:
        return backward_weight;
      case ActionKind::kStep:
      case ActionKind::kOffload:
      case ActionKind::kReload:
        return 0;
    }
    return 0;
  }
};

std::vector<Collectives> CollectivesOfStages(const ModelGraph& graph,
                                             const ModelPartition& partition, TensorParallel split,
                                             int64_t samples) {
  std::vector<Collectives> stages(partition.num_stages());
  for (size_t i = 0; split.divides() && i < graph.layers.size(); ++i) {
    const TensorShare share = ShareOf(graph.layers[i], samples, TokenSlice(), split);
    Collectives& stage = stages[partition.stage_of_layer[i]];
    stage.forward += static_cast<int64_t>(share.forward.size() + share.context.forward.size());
    stage.backward_input +=
        static_cast<int64_t>(share.backward_input.size() + share.context.backward_input.size());
    stage.backward_weight += static_cast<int64_t>(share.backward_weight.size());
  }
  return stages;
}

}  // namespace

absl::StatusOr<Nanoseconds> ReplayedStep(const std::vector<Trace>& traces, const ModelGraph& graph,
                                         TensorParallel split, int64_t samples,
                                         const PipelineTraining& training) {
  LinkTimesOptions link;
  link.large_bytes = 0;
  PIPELAB_ASSIGN_OR_RETURN(const LinkTimes hand_over, MeasureLink(link));
  const Program& program = training.program();
  CostTable costs = training.costs();
  costs.hop_latency = Nanoseconds(std::llround(hand_over.latency_seconds * 1e9));
  absl::StatusOr<CostTable> replay = ReplayCosts(program, traces, std::move(costs));
  if (!replay.ok()) return Nanoseconds(0);
  const std::vector<Collectives> stages =
      CollectivesOfStages(graph, training.partition(), split, samples);
  for (size_t d = 0; d < program.instructions.size(); ++d) {
    for (size_t i = 0; i < program.instructions[d].size(); ++i) {
      const Instruction& instruction = program.instructions[d][i];
      if (instruction.op != OpCode::kCompute) continue;
      const Action& a = instruction.action;
      const auto statistics = static_cast<int64_t>(replay->StatisticsOf(a).size());
      replay->instruction_time[d][i] +=
          replay->hop_latency * (stages[a.stage].Of(a.kind) + statistics);
    }
  }
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, *replay, TraceOrigin::kReplayed));
  return trace.makespan;
}

}  // namespace pipelab
