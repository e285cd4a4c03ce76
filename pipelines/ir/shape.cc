#include "pipelines/ir/shape.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMaxInt16 = std::numeric_limits<int16_t>::max();
constexpr int kMaxReplicas = 256;  // Instruction::replica

template <typename... Parts>
absl::Status InvalidShape(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckGraph(const StageGraph& graph) {
  const int stages = graph.num_stages();
  if (stages < 1 || stages > kMaxInt16) {
    return InvalidShape("a schedule has 1 to ", kMaxInt16, " stages, not ", stages);
  }
  for (const StageGraph::Edge& e : graph.edges) {
    if (e.from < 0 || e.from >= stages || e.to < 0 || e.to >= stages) {
      return InvalidShape("edge ", e.from, "-", e.to, " leaves the ", stages, " stages");
    }
  }
  // The lists are a second form of `edges`: one order of edges, so that text and tensors agree.
  const StageGraph expected = StageGraph::FromEdges(stages, graph.edges);
  if (graph.in_edges != expected.in_edges || graph.out_edges != expected.out_edges) {
    return InvalidShape(
        "the stage graph's edge lists do not fit its edges (use StageGraph::FromEdges)");
  }
  const std::vector<int> sorted = graph.TopologicalOrder();
  if (static_cast<int>(sorted.size()) < stages) {
    std::vector<char> found(stages, 0);
    for (int s : sorted) found[s] = 1;
    const auto on_cycle = std::find(found.begin(), found.end(), 0) - found.begin();
    return InvalidShape(
        "the stage graph has a cycle, at or before stage ", on_cycle,
        !graph.AllGradientsAreOwn() ? "; a late gradient breaks none: outputs are never late" : "");
  }
  return absl::OkStatus();
}

absl::Status CheckGroup(const std::vector<int>& group, int replica, int stage, int devices) {
  if (group.empty())
    return InvalidShape("replica ", replica, ", stage ", stage, ": it has no device");
  for (size_t i = 0; i < group.size(); ++i) {
    if (group[i] < 0 || group[i] >= devices) {
      return InvalidShape("replica ", replica, ", stage ", stage, ": device ", group[i],
                          " does not exist; there are ", devices, " devices");
    }
    if (std::count(group.begin(), group.end(), group[i]) > 1) {
      return InvalidShape("replica ", replica, ", stage ", stage, ": device ", group[i],
                          " is in its group twice");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlacement(const Schedule& s) {
  const Placement& p = s.placement;
  const int devices = p.num_devices;
  if (devices < 1 || devices > kMaxInt16) {
    return InvalidShape("a schedule has 1 to ", kMaxInt16, " devices, not ", devices);
  }
  if (static_cast<int>(s.order.size()) != devices) {
    return InvalidShape("the order has ", s.order.size(), " device lists for ", devices,
                        " devices");
  }
  if (p.num_replicas() < 1 || p.num_replicas() > kMaxReplicas) {
    return InvalidShape("a schedule has 1 to ", kMaxReplicas, " replicas, not ", p.num_replicas());
  }
  for (int r = 0; r < p.num_replicas(); ++r) {
    if (static_cast<int>(p.groups[r].size()) != s.num_stages()) {
      return InvalidShape("replica ", r, " places ", p.groups[r].size(), " stages of ",
                          s.num_stages());
    }
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      PIPELAB_RETURN_IF_ERROR(CheckGroup(p.groups[r][stage], r, stage, devices));
    }
  }
  if (s.num_micro_batches < 1) {
    return InvalidShape("a schedule has at least 1 micro-batch, not ", s.num_micro_batches);
  }
  if (static_cast<int64_t>(p.replica_of_micro_batch.size()) != s.num_micro_batches) {
    return InvalidShape(p.replica_of_micro_batch.size(), " micro-batches have a replica, of ",
                        s.num_micro_batches);
  }
  for (int m = 0; m < s.num_micro_batches; ++m) {
    const int r = p.replica_of_micro_batch[m];
    if (r < 0 || r >= p.num_replicas()) {
      return InvalidShape("micro-batch ", m, ": replica ", r, " does not exist; there are ",
                          p.num_replicas());
    }
  }
  if (s.num_slices < 1 || s.num_slices > kMaxInt16) {
    return InvalidShape("a micro-batch has 1 to ", kMaxInt16, " slices, not ", s.num_slices);
  }
  return absl::OkStatus();
}

// Micro-batches that divide one another, so that an action's samples are those of whole
// micro-batches, or of a part of one, at each neighbour.
absl::Status CheckMicroBatches(const Schedule& s) {
  const std::vector<int32_t>& counts = s.micro_batches_of_stage;
  if (counts.empty()) return absl::OkStatus();
  const bool replays = s.stages.ReplayWindow() > 0;
  if (static_cast<int>(counts.size()) != s.num_stages()) {
    return InvalidShape(counts.size(), " stages have a number of micro-batches, of ",
                        s.num_stages());
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    if (replays && counts[stage] >= 1 && counts[stage] <= s.num_micro_batches) continue;
    if (replays) {
      return InvalidShape("stage ", stage, " runs ", counts[stage], " passes; it must be 1 to ",
                          s.num_micro_batches, ", the schedule's micro-batches");
    }
    if (counts[stage] < 1 || s.num_micro_batches % counts[stage] != 0) {
      return InvalidShape("stage ", stage, " runs ", counts[stage],
                          " micro-batches, which must divide the schedule's ", s.num_micro_batches);
    }
  }
  if (*std::max_element(counts.begin(), counts.end()) != s.num_micro_batches) {
    return InvalidShape("no stage runs all of the schedule's ", s.num_micro_batches,
                        " micro-batches");
  }
  if (replays) return absl::OkStatus();
  for (const StageGraph::Edge& e : s.stages.edges) {
    const int32_t from = counts[e.from], to = counts[e.to];
    if (from % to != 0 && to % from != 0) {
      return InvalidShape("edge ", e.from, "-", e.to, ": its stages run ", from, " and ", to,
                          " micro-batches; one number must divide the other");
    }
  }
  const std::vector<int>& replica = s.placement.replica_of_micro_batch;
  for (int stage = 0; stage < s.num_stages() && s.placement.num_replicas() > 1; ++stage) {
    const int size = s.MicroBatchSize(stage);
    for (int m = 0; m < s.num_micro_batches; ++m) {
      if (replica[m] == replica[m / size * size]) continue;
      return InvalidShape("stage ", stage, ", micro-batch ", m / size,
                          ": it has samples of replicas ", replica[m / size * size], " and ",
                          replica[m]);
    }
  }
  return absl::OkStatus();
}

// The slices of a micro-batch share what a forward keeps.
absl::Status CheckForwardOnly(const Schedule& s) {
  if (!s.forward_only || s.num_slices == 1) return absl::OkStatus();
  return InvalidShape("a schedule of forwards alone has whole micro-batches, not ", s.num_slices,
                      " slices");
}

// Outputs that no edge reads, or late ones, would need a forward that does without its input.
absl::Status CheckOutputs(const Schedule& s) {
  for (const StageGraph::Edge& e : s.stages.edges) {
    if (!e.output.none() && !e.output.late()) continue;
    return InvalidShape("edge ", e.from, "-", e.to,
                        ": its output is read as a gradient may be; a forward needs its input");
  }
  return absl::OkStatus();
}

// A late gradient stays in the rows of the devices that made it until it is taken.
absl::Status CheckLags(const Schedule& s) {
  for (const StageGraph::Edge& e : s.stages.edges) {
    const auto invalid = [&](const auto&... parts) {
      return InvalidShape("edge ", e.from, "-", e.to, ": ", parts...);
    };
    if (e.gradient.same() || e.gradient.none()) continue;
    if (!e.gradient.late()) return invalid("its gradient is read as an output may be");
    if (e.gradient.number < 1 || e.gradient.number > s.num_micro_batches) {
      return invalid("a gradient that is ", e.gradient.number,
                     " micro-batches late; it must be 1 to ", s.num_micro_batches,
                     ", the micro-batches of a step");
    }
    if (s.MicroBatches(e.from) != s.MicroBatches(e.to)) {
      return invalid("its stages run ", s.MicroBatches(e.from), " and ", s.MicroBatches(e.to),
                     " micro-batches; late gradients need equal numbers");
    }
    if (s.placement.num_replicas() > 1) {
      return invalid(
          "late gradients need one replica; devices of another have earlier micro-batches");
    }
    if (s.GroupSize(e.from) != s.GroupSize(e.to)) {
      return invalid("its stages have ", s.GroupSize(e.from), " and ", s.GroupSize(e.to),
                     " devices; late gradients need equal numbers");
    }
  }
  return absl::OkStatus();
}

// Each pass begins with what one earlier pass made, whole and in one place.
absl::Status CheckCarried(const Schedule& s) {
  const auto carries = std::find_if(s.stages.edges.begin(), s.stages.edges.end(),
                                    [](const StageGraph::Edge& e) { return e.output.list(); });
  const bool any = carries != s.stages.edges.end();
  if (!any && s.carried.empty()) return absl::OkStatus();
  if (!any) return InvalidShape("micro-batches take what is carried, and no edge carries");
  for (const StageGraph::Edge& e : s.stages.edges) {
    const bool alone = s.forward_only || (e.output.list() && s.Prepares(e.to));
    if ((e.output.list() && !alone) || s.num_slices > 1 || !s.micro_batches_of_stage.empty()) {
      return InvalidShape("edge ", carries->from, "-", carries->to,
                          " carries: it is for forwards alone, of whole micro-batches of one size");
    }
    if (e.output.list() && s.GroupSize(e.from) != s.GroupSize(e.to)) {
      return InvalidShape("edges carry between stages of as many devices");
    }
  }
  if (s.forward_only) {
    if (s.placement.num_replicas() > 1) return InvalidShape("edges carry within one replica");
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      if (s.GroupSize(stage) > 1) return InvalidShape("edges carry between stages of one device");
    }
  }
  if (static_cast<int64_t>(s.carried.size()) != s.num_micro_batches) {
    return InvalidShape(s.carried.size(), " micro-batches say what is carried to them, of ",
                        s.num_micro_batches);
  }
  std::vector<char> taken(s.num_micro_batches, 0);
  for (int m = 0; m < s.num_micro_batches; ++m) {
    const int32_t source = s.carried[m];
    if (source == -1) continue;
    if (source < 0 || source >= m) {
      return InvalidShape("micro-batch ", m, " takes what micro-batch ", source,
                          " made; it must be an earlier one");
    }
    if (taken[source]++ > 0) return InvalidShape("two micro-batches take what ", source, " made");
    const std::vector<int>& replica = s.placement.replica_of_micro_batch;
    if (replica[source] != replica[m]) {
      return InvalidShape("micro-batch ", m, " of replica ", replica[m], " takes what ", source,
                          " made, of replica ", replica[source]);
    }
  }
  return absl::OkStatus();
}

// Workers in front of stages that are trained in one place.
absl::Status CheckPrepares(const Schedule& s) {
  if (s.prepares.empty()) return absl::OkStatus();
  if (static_cast<int>(s.prepares.size()) != s.num_stages()) {
    return InvalidShape(s.prepares.size(), " stages say whether they prepare, of ", s.num_stages());
  }
  if (s.forward_only || s.stages.ReplayWindow() > 0 || s.num_slices > 1 ||
      !s.micro_batches_of_stage.empty()) {
    return InvalidShape(
        "stages that prepare are for training, with whole micro-batches of one size");
  }
  for (const StageGraph::Edge& e : s.stages.edges) {
    if (s.Prepares(e.to) && !s.Prepares(e.from) && !e.output.list()) {
      return InvalidShape("edge ", e.from, "-", e.to,
                          ": a stage that prepares takes outputs of a trained",
                          " one of an earlier micro-batch alone");
    }
    const bool prepares = s.Prepares(e.from) || s.Prepares(e.to);
    if (!prepares || e.gradient.none()) continue;
    return InvalidShape("edge ", e.from, "-", e.to,
                        " of a stage that prepares must bring no gradient");
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (const auto& groups : s.placement.groups) {
      if (s.Prepares(stage) || groups[stage] == s.placement.groups[0][stage]) continue;
      return InvalidShape("stage ", stage,
                          " is trained for all replicas and must have the same devices",
                          " in each");
    }
  }
  return absl::OkStatus();
}

// A buffer lies between two devices, and a stage reads its samples in one place.
absl::Status CheckReplay(const Schedule& s) {
  const auto replays = [](const StageGraph::Edge& e) { return e.output.replay(); };
  const std::vector<StageGraph::Edge>& edges = s.stages.edges;
  if (std::none_of(edges.begin(), edges.end(), replays)) return absl::OkStatus();
  const int window = s.stages.ReplayWindow();
  if (window < 1 || window > s.num_micro_batches) {
    return InvalidShape("a replay of the last ", window, " outputs; it must be 1 to ",
                        s.num_micro_batches, ", the micro-batches of a step");
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    if (!s.stages.in_edges[stage].empty() || !s.stages.out_edges[stage].empty()) continue;
    return InvalidShape("replay: stage ", stage, " has no edge, so that no stage reads it");
  }
  if (s.forward_only || s.num_slices > 1 || s.placement.num_replicas() > 1) {
    return InvalidShape("replay is for training with whole micro-batches and one replica");
  }
  const auto& groups = s.placement.groups[0];
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    if (groups[stage].size() > 1) return InvalidShape("replay needs stages of one device");
    for (int in : s.stages.in_edges[stage]) {
      const StageGraph::Edge& e = s.stages.edges[in];
      const int from = s.stages.edges[s.stages.in_edges[stage][0]].from;
      if (e.from != from) {
        return InvalidShape("replay: stage ", stage, " reads stages ", from, " and ", e.from,
                            ", whose samples would differ");
      }
      if (e.output != edges[0].output) {
        return InvalidShape("replay: edge ", e.from, "-", e.to,
                            " must have the same buffer as the others");
      }
      if (!e.gradient.none()) {
        return InvalidShape("replay: edge ", e.from, "-", e.to, " must bring no gradient");
      }
      if (groups[e.from] == groups[stage]) {
        return InvalidShape("replay: stages ", e.from, " and ", stage, " must be on two devices");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShape(const Schedule& schedule) {
  PIPELAB_RETURN_IF_ERROR(CheckGraph(schedule.stages));
  PIPELAB_RETURN_IF_ERROR(CheckPlacement(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckMicroBatches(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckForwardOnly(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckPrepares(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckReplay(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckCarried(schedule));
  PIPELAB_RETURN_IF_ERROR(CheckOutputs(schedule));
  return CheckLags(schedule);
}

}  // namespace pipelab
