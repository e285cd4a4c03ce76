// Problems for planners from what other planners' files and the model zoo say.
//
//   PIPELAB_ASSIGN_OR_RETURN(PiperProblem piper, ParsePiper(text, "bert.json"));
//   PlanProblem p = PlanProblemOf(piper);
//   p.devices = 2048;
//   PIPELAB_RETURN_IF_ERROR(FinishProblem(&p, "--piper_json=bert.json"));
//
// Numbers stay as the file has them. Machines may be changed before FinishProblem.
#ifndef PIPELAB_PIPELINES_PLANNERS_PLAN_INPUTS_H_
#define PIPELAB_PIPELINES_PLANNERS_PLAN_INPUTS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/files/dnn_partitioning_json.h"
#include "models/files/pipedream_profile.h"
#include "models/files/piper_json.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/device.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// Objective kStageTime. A third of a variant's time is taken for its forward; a variant recomputes
// where its id says so ("activation recomp"), and where there are two and the second keeps less in
// flight. With a unit of milliseconds times become seconds; else they are as in the file.
PlanProblem PlanProblemOf(const PiperProblem& piper);

// Objective kPipeDream, without the nodes that PipeDream leaves out (WithoutInputs). Seconds. Each
// mini-batch in flight keeps its activations and, as PipeDream stashes weights, a version of the
// parameters. No memory limit and no network: levels are to be filled in.
PlanProblem PlanProblemOf(const PipeDreamProfile& profile);

// Objective kMaxLoad, milliseconds. InvalidArgument, "WHAT: ...", where two edges of a node have
// different costs (the transfer is the node's), or an edge goes from the backward to the forward
// part.
absl::StatusOr<PlanProblem> PlanProblemOf(const PlacementProblem& placement,
                                          absl::string_view what);

// ModelProblem (model_problem.h) of its layers.
absl::StatusOr<PlanProblem> PlanProblemOf(const ModelGraph& graph, const ClusterSpec& cluster,
                                          NumberType type, int64_t devices,
                                          int64_t micro_batch_size);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PLAN_INPUTS_H_
