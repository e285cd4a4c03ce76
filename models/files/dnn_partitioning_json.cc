#include "models/files/dnn_partitioning_json.h"

#include <utility>

#include "models/files/graph_json.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using nlohmann::json;

constexpr int64_t kMostDevices = int64_t{1} << 30;
constexpr int64_t kMostClass = int64_t{1} << 53;

// The files have both true and 1.
absl::StatusOr<bool> Flag(const JsonObject& object, absl::string_view key) {
  const absl::StatusOr<bool> flag = object.Bool(key);
  if (flag.ok()) return flag;
  const absl::StatusOr<int64_t> number = object.Integer(key, 0, 1);
  if (number.ok()) return *number == 1;
  if (!object.Has(key)) return flag.status();
  return object.Error(key, "must be true or false, or 1 or 0");
}

absl::StatusOr<PlacementNode> ReadNode(const JsonObject& object, NodeIds* ids) {
  PlacementNode node;
  PIPELAB_ASSIGN_OR_RETURN(node.id, ids->Add(object, "id"));
  PIPELAB_ASSIGN_OR_RETURN(node.name, object.String("name"));
  PIPELAB_ASSIGN_OR_RETURN(node.on_accelerator, Flag(object, "supportedOnFpga"));
  PIPELAB_ASSIGN_OR_RETURN(node.cpu_ms, PlausibleNumber(object, "cpuLatency"));
  PIPELAB_ASSIGN_OR_RETURN(node.accelerator_ms, PlausibleNumber(object, "fpgaLatency"));
  PIPELAB_ASSIGN_OR_RETURN(node.is_backward, Flag(object, "isBackwardNode"));
  PIPELAB_ASSIGN_OR_RETURN(node.bytes, PlausibleNumber(object, "size"));
  if (object.Has("colorClass")) {
    PIPELAB_ASSIGN_OR_RETURN(node.color_class,
                             object.Integer("colorClass", -kMostClass, kMostClass));
  }
  return node;
}

absl::StatusOr<PlacementEdge> ReadEdge(const JsonObject& object, NodeIds* ids) {
  PIPELAB_ASSIGN_OR_RETURN(const auto ends, ids->AddEdge(object));
  PlacementEdge edge;
  edge.from = ends.first;
  edge.to = ends.second;
  PIPELAB_ASSIGN_OR_RETURN(edge.ms, PlausibleNumber(object, "cost"));
  if (object.Has("size")) {
    PIPELAB_ASSIGN_OR_RETURN(edge.bytes, PlausibleNumber(object, "size"));
  }
  return edge;
}

}  // namespace

absl::StatusOr<PlacementProblem> ReadPlacement(const json& root, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PlacementProblem problem;
  PIPELAB_ASSIGN_OR_RETURN(problem.memory_bytes, PlausibleNumber(file, "maxSizePerFPGA"));
  PIPELAB_ASSIGN_OR_RETURN(problem.accelerators, file.Integer("maxFPGAs", 0, kMostDevices));
  PIPELAB_ASSIGN_OR_RETURN(problem.cpus, file.Integer("maxCPUs", 0, kMostDevices));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> nodes, file.Objects("nodes"));
  if (nodes.empty()) return file.Error("nodes", "there are none");
  NodeIds ids;
  for (const JsonObject& object : nodes) {
    PIPELAB_ASSIGN_OR_RETURN(PlacementNode node, ReadNode(object, &ids));
    problem.nodes.push_back(std::move(node));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> edges, file.Objects("edges"));
  for (const JsonObject& object : edges) {
    PIPELAB_ASSIGN_OR_RETURN(const PlacementEdge edge, ReadEdge(object, &ids));
    problem.edges.push_back(edge);
  }
  PIPELAB_RETURN_IF_ERROR(ids.CheckAcyclic(what));
  return problem;
}

absl::StatusOr<PlacementProblem> ParsePlacement(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const json root, ParseJson(text, what));
  return ReadPlacement(root, what);
}

std::string PlacementToJson(const PlacementProblem& problem) {
  json nodes = json::array(), edges = json::array();
  for (const PlacementNode& node : problem.nodes) {
    json object = {{"id", node.id},
                   {"name", node.name},
                   {"supportedOnFpga", node.on_accelerator},
                   {"cpuLatency", node.cpu_ms},
                   {"fpgaLatency", node.accelerator_ms},
                   {"isBackwardNode", node.is_backward},
                   {"size", node.bytes}};
    if (node.color_class.has_value()) object["colorClass"] = *node.color_class;
    nodes.push_back(std::move(object));
  }
  for (const PlacementEdge& edge : problem.edges) {
    json object = {{"sourceId", problem.nodes[edge.from].id},
                   {"destId", problem.nodes[edge.to].id},
                   {"cost", edge.ms}};
    if (edge.bytes.has_value()) object["size"] = *edge.bytes;
    edges.push_back(std::move(object));
  }
  return DumpJson({{"maxSizePerFPGA", problem.memory_bytes},
                   {"maxFPGAs", problem.accelerators},
                   {"maxCPUs", problem.cpus},
                   {"nodes", std::move(nodes)},
                   {"edges", std::move(edges)}});
}

}  // namespace pipelab
