// What the JSON files of other planners have in common: nodes with ids and numbers, edges between
// ids.
#ifndef PIPELAB_MODELS_FILES_GRAPH_JSON_H_
#define PIPELAB_MODELS_FILES_GRAPH_JSON_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/json_object.h"

namespace pipelab {

// From 0 to kMostPlausible (number_text.h).
absl::StatusOr<double> PlausibleNumber(const JsonObject& object, absl::string_view key);

// Ids of nodes, in the order in which they come, and the edges between them.
class NodeIds {
 public:
  // `key` of the node; an id that is there already is an error.
  absl::StatusOr<int64_t> Add(const JsonObject& node, absl::string_view key);
  // The index of the node that `key` names.
  absl::StatusOr<int> Find(const JsonObject& edge, absl::string_view key) const;
  // -1: there is none.
  int IndexOf(int64_t id) const;
  int64_t IdOf(int index) const { return ids_[index]; }

  // sourceId and destId; an edge that is there already is an error.
  absl::StatusOr<std::pair<int, int>> AddEdge(const JsonObject& edge);
  // An error where the edges have a cycle.
  absl::Status CheckAcyclic(absl::string_view what) const;

  const std::vector<std::vector<int>>& inputs() const { return inputs_; }

 private:
  std::map<int64_t, int> index_;
  std::vector<int64_t> ids_;
  std::set<std::pair<int, int>> edges_;
  std::vector<std::vector<int>> inputs_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_GRAPH_JSON_H_
