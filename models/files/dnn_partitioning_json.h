// Inputs of the device-placement programs of Tarnawski et al. 2020 ("Efficient Algorithms for
// Device Placement of DNN Graph Operators"; the repository dnn-partitioning): graphs of layers or
// operators, for inference or training.
//
//   PIPELAB_ASSIGN_OR_RETURN(PlacementProblem p, ParsePlacement(text, "bert24.json"));
//   p.nodes[3].accelerator_ms;
//
// Times are milliseconds, sizes bytes, both as the file has them. Keys other than these are
// ignored; of these, only colorClass and an edge's size may be missing.
//
// Errors: InvalidArgument, one line with file, key and reason.
#ifndef PIPELAB_MODELS_FILES_DNN_PARTITIONING_JSON_H_
#define PIPELAB_MODELS_FILES_DNN_PARTITIONING_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "nlohmann/json.hpp"

namespace pipelab {

struct PlacementNode {
  int64_t id = 0;
  std::string name;
  bool on_accelerator = true;  // supportedOnFpga
  double cpu_ms = 0, accelerator_ms = 0;
  bool is_backward = false;
  // Nodes of one class must share a device: a layer's forward and backward, operators that share a
  // parameter.
  absl::optional<int64_t> color_class;
  double bytes = 0;  // in the memory of its device
};

struct PlacementEdge {
  int from = 0, to = 0;  // indices of nodes, not ids
  double ms = 0;         // of the transfer between two devices (cost)
  absl::optional<double> bytes;
};

// Without a cycle; ids and edges are there once.
struct PlacementProblem {
  double memory_bytes = 0;  // of an accelerator
  int64_t accelerators = 0, cpus = 0;
  std::vector<PlacementNode> nodes;
  std::vector<PlacementEdge> edges;
};

// `what` names the file.
absl::StatusOr<PlacementProblem> ParsePlacement(absl::string_view text, absl::string_view what);
absl::StatusOr<PlacementProblem> ReadPlacement(const nlohmann::json& root, absl::string_view what);
std::string PlacementToJson(const PlacementProblem& problem);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_DNN_PARTITIONING_JSON_H_
