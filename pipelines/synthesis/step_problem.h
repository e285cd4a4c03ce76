// The stages of a training step as a problem of synthesis, and its orders as steps.
//
//   std::vector<int> devices = LoopedDevices(4, 1);
//   PIPELAB_ASSIGN_OR_RETURN(SynthesisProblem p,
//                            ProblemOfStep(&cache, config, devices, {}, true, limits));
//   PredictOrder(&cache, config, ScheduleOf(p, words), limits.speeds)->step_time;
#ifndef PIPELAB_PIPELINES_SYNTHESIS_STEP_PROBLEM_H_
#define PIPELAB_PIPELINES_SYNTHESIS_STEP_PROBLEM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "pipelines/step/step_config.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

struct StepLimits {
  Bytes memory;                // of a device; 0: the cluster's, or no limit
  std::vector<double> speeds;  // [pipeline device] of its usual speed; empty: 1
};

// The problem of one placement, with so many token slices of a micro-batch. InvalidArgument where
// the stages are no chain, or the model takes no slices.
absl::StatusOr<SynthesisProblem> ProblemOfStep(StepCache* cache, const StepConfig& config,
                                               const std::vector<int>& device_of_stage,
                                               const std::vector<bool>& recomputed,
                                               bool split_backward, const StepLimits& limits,
                                               int slices = 1);

// A step of the schedule on devices of these speeds.
absl::StatusOr<StepPrediction> PredictOrder(StepCache* cache, const StepConfig& config,
                                            const Schedule& schedule,
                                            const std::vector<double>& speeds);

// Stages' times and memory as a problem, of token slices where the costs are. `members`: devices of
// the costs' program for each of the placement's. `recomputed`: by stage; empty: none is.
absl::StatusOr<SynthesisProblem> ProblemOfCosts(const CostTable& costs, const StageGraph& stages,
                                                std::vector<int> device_of_stage, int devices,
                                                int micro_batches, int members,
                                                std::vector<bool> recomputed, bool split_backward);

// As if nothing of a micro-batch were on a device between F and I, and two copies were on their
// way: what offloading all stages can free at the most.
SynthesisProblem WithoutHeld(SynthesisProblem problem);

// The stages to recompute, or to offload, so that each device has room for as many micro-batches as
// a pipeline that never waits has in flight, and `more` of each stage: first those that free the
// most. `none` and `all` are one placement's problem without any and with all of them.
std::vector<bool> StagesThatMakeRoom(const SynthesisProblem& none, const SynthesisProblem& all,
                                     int more);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_STEP_PROBLEM_H_
