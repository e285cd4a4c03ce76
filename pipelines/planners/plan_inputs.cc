#include "pipelines/planners/plan_inputs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "pipelines/planners/model_problem.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kForwardShare = 1.0 / 3;

PlanVariant VariantOf(const PiperVariant& piper, const PiperProblem& problem,
                      const std::vector<int>& predecessors, const std::vector<int>& successors) {
  PlanVariant variant;
  variant.name = piper.id;
  variant.recompute = absl::StrContains(piper.id, "recomp");
  variant.time = problem.Seconds(piper.time);
  variant.forward_time = variant.time * kForwardShare;
  variant.parameter_bytes = piper.parameter_bytes;
  variant.in_flight_bytes = piper.in_flight_bytes;
  variant.fixed_bytes = piper.fixed_bytes;
  for (int u : predecessors) variant.in_sync.push_back(piper.forward_sync_bytes.at(u));
  for (int w : successors) variant.out_sync.push_back(piper.backward_sync_bytes.at(w));
  return variant;
}

PlanVariant VariantOf(const PipeDreamNode& node) {
  PlanVariant variant;
  variant.name = "plain";
  variant.forward_time = node.forward_ms / 1000.0;
  variant.time = (node.forward_ms + node.backward_ms) / 1000.0;
  variant.parameter_bytes = node.parameter_bytes;
  variant.in_flight_bytes = node.TotalActivationBytes() + node.parameter_bytes;
  return variant;
}

// The transfer time of each node: that of its edges.
absl::StatusOr<std::vector<double>> TransferTimes(const PlacementProblem& placement,
                                                  absl::string_view what) {
  std::vector<double> times(placement.nodes.size(), -1);
  for (const PlacementEdge& edge : placement.edges) {
    double& time = times[edge.from];
    if (time >= 0 && std::abs(time - edge.ms) > 1e-6) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": edges: node ", placement.nodes[edge.from].id, " has edges of cost ", time,
          " and ", edge.ms, "; its output goes to all of them, so they must cost the same"));
    }
    if (time < 0) time = edge.ms;
    if (placement.nodes[edge.from].is_backward && !placement.nodes[edge.to].is_backward) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": edges: from ", placement.nodes[edge.from].id,
                       " of the backward to ", placement.nodes[edge.to].id, " of the forward"));
    }
  }
  for (double& time : times) time = std::max(time, 0.0);
  return times;
}

}  // namespace

PlanProblem PlanProblemOf(const PiperProblem& piper) {
  PlanProblem problem;
  problem.integer_ids = true;
  problem.objective = PlanObjective::kStageTime;
  problem.time_unit = "s/microbatch";
  problem.devices = piper.devices;
  problem.memory_bytes = piper.memory_bytes;
  problem.bandwidth = piper.bandwidth.value();
  problem.micro_batches = piper.micro_batches;
  std::vector<std::vector<int>> predecessors(piper.nodes.size()), successors(piper.nodes.size());
  for (const PiperEdge& edge : piper.edges) {
    problem.edges.push_back({edge.from, edge.to, edge.bytes});
    predecessors[edge.to].push_back(edge.from);
    successors[edge.from].push_back(edge.to);
  }
  for (size_t i = 0; i < piper.nodes.size(); ++i) {
    const PiperNode& node = piper.nodes[i];
    PlanOperator o;
    o.id = absl::StrCat(node.id);
    o.name = node.name;
    for (const auto& [degree, variants] : node.variants) {
      for (const PiperVariant& variant : variants) {
        o.variants[degree].push_back(VariantOf(variant, piper, predecessors[i], successors[i]));
      }
    }
    problem.operators.push_back(std::move(o));
  }
  for (const PiperEdge& edge : piper.edges) {
    double& output = problem.operators[edge.from].output_bytes;
    output = std::max(output, edge.bytes);
  }
  return problem;
}

PlanProblem PlanProblemOf(const PipeDreamProfile& profile) {
  const PipeDreamProfile rest = WithoutInputs(profile);
  PlanProblem problem;
  problem.objective = PlanObjective::kPipeDream;
  problem.time_unit = "s/minibatch";
  for (const PipeDreamNode& node : rest.nodes) {
    PlanOperator o;
    o.id = node.id;
    o.name = node.description;
    o.output_bytes = node.TotalActivationBytes();
    o.variants[1].push_back(VariantOf(node));
    problem.operators.push_back(std::move(o));
  }
  for (const PipeDreamEdge& edge : rest.edges) {
    problem.edges.push_back({edge.from, edge.to, problem.operators[edge.from].output_bytes});
  }
  return problem;
}

absl::StatusOr<PlanProblem> PlanProblemOf(const PlacementProblem& placement,
                                          absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> transfers, TransferTimes(placement, what));
  PlanProblem problem;
  problem.integer_ids = true;
  problem.objective = PlanObjective::kMaxLoad;
  problem.time_unit = "ms";
  problem.devices = placement.accelerators;
  problem.processors = placement.cpus;
  problem.memory_bytes = placement.memory_bytes;
  std::map<int64_t, int> colours;
  for (size_t i = 0; i < placement.nodes.size(); ++i) {
    const PlacementNode& node = placement.nodes[i];
    PlanOperator o;
    o.id = absl::StrCat(node.id);
    o.name = node.name;
    o.transfer_time = transfers[i];
    o.processor_time = node.cpu_ms;
    o.on_accelerator = node.on_accelerator;
    o.is_backward = node.is_backward;
    if (node.color_class.has_value()) {
      o.colour = colours.emplace(*node.color_class, static_cast<int>(colours.size())).first->second;
    }
    PlanVariant variant;
    variant.name = "plain";
    variant.time = node.accelerator_ms;
    variant.forward_time = node.is_backward ? 0 : node.accelerator_ms;
    variant.fixed_bytes = node.bytes;
    o.variants[1].push_back(std::move(variant));
    problem.operators.push_back(std::move(o));
  }
  for (const PlacementEdge& edge : placement.edges) {
    problem.edges.push_back({edge.from, edge.to, edge.bytes.value_or(0)});
    double& output = problem.operators[edge.from].output_bytes;
    output = std::max(output, edge.bytes.value_or(0));
  }
  return problem;
}

absl::StatusOr<PlanProblem> PlanProblemOf(const ModelGraph& graph, const ClusterSpec& cluster,
                                          NumberType type, int64_t devices,
                                          int64_t micro_batch_size) {
  ModelProblemOptions options;
  options.type = type;
  options.devices = devices;
  options.micro_batch_size = micro_batch_size;
  return ModelProblem(graph, cluster, options);
}

}  // namespace pipelab
