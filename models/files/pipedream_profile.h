// PipeDream's profiles (Narayanan et al. 2019): graph.txt, what its profiler writes and its planner
// reads.
//
//   PIPELAB_ASSIGN_OR_RETURN(PipeDreamProfile p, ParsePipeDreamProfile(text, "vgg16.graph.txt"));
//   p = WithoutInputs(p);                               // what PipeDream plans with
//   p.nodes[3].forward_ms;
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, MakeGraph(ToLayerList(p, "vgg16"), "vgg16"));
//
// A line a node, then a line an edge, which begins with a tab:
//   node4 -- Linear(1, 2) -- forward_compute_time=0.073, backward_compute_time=0.2,
//     activation_size=[64.0; 8.0], parameter_size=12.000 -- stage_id=1      (one line)
//   <tab>node4 -- node5
// Times are milliseconds, sizes bytes, all of one mini-batch of the profile; they are kept as the
// file has them. Nodes and edges come in any order.
//
// Errors: InvalidArgument, one line with file, line number and reason.
#ifndef PIPELAB_MODELS_FILES_PIPEDREAM_PROFILE_H_
#define PIPELAB_MODELS_FILES_PIPEDREAM_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "models/files/layer_list.h"

namespace pipelab {

struct PipeDreamNode {
  std::string id;           // "node4"
  std::string description;  // "Linear(1, 2)"
  double forward_ms = 0, backward_ms = 0;
  std::vector<double> activation_bytes;  // of each of its outputs; at least one
  double parameter_bytes = 0;
  absl::optional<int> stage;  // of a plan

  double TotalActivationBytes() const;  // what PipeDream counts
};

struct PipeDreamEdge {
  int from = 0, to = 0;  // indices of nodes
};

// Without a cycle; ids and edges are there once.
struct PipeDreamProfile {
  std::vector<PipeDreamNode> nodes;  // in the file's order, as the edges
  std::vector<PipeDreamEdge> edges;
};

// `what` names the file.
absl::StatusOr<PipeDreamProfile> ParsePipeDreamProfile(absl::string_view text,
                                                       absl::string_view what);
// Numbers to the last digit; ParsePipeDreamProfile reads it back.
std::string PipeDreamProfileToText(const PipeDreamProfile& profile);

// Without sources whose description begins with "Input" and, then, sinks whose description begins
// with "__getitem__": PipeDream's planner does the same.
PipeDreamProfile WithoutInputs(const PipeDreamProfile& profile);

// The same layers and edges, named "node4 Linear"; a sample of the list is a mini-batch of the
// profile. Bytes are rounded to whole ones, times to nanoseconds. Lost or assumed: which of a
// node's outputs an edge takes (each takes all, as in PipeDream); what of the backward is the
// weight part (half of it, where there are parameters); what a layer keeps besides its inputs
// (nothing). Every sink is an output. Parameters are taken for 4 bytes each.
LayerList ToLayerList(const PipeDreamProfile& profile, absl::string_view name);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_PIPEDREAM_PROFILE_H_
