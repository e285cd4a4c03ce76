#include "models/files/graph_json.h"

#include "absl/strings/str_cat.h"
#include "models/files/graph_order.h"
#include "models/files/number_text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostId = int64_t{1} << 53;  // larger ones are not exact everywhere

}  // namespace

absl::StatusOr<double> PlausibleNumber(const JsonObject& object, absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const double number, object.Number(key));
  if (IsPlausible(number)) return number;
  return object.Error(key, NumberText(number), ": must be from 0 to ", kMostPlausible);
}

absl::StatusOr<int64_t> NodeIds::Add(const JsonObject& node, absl::string_view key) {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t id, node.Integer(key, 0, kMostId));
  if (!index_.emplace(id, static_cast<int>(ids_.size())).second) {
    return node.Error(key, id, ": another node has this id");
  }
  ids_.push_back(id);
  inputs_.emplace_back();
  return id;
}

int NodeIds::IndexOf(int64_t id) const {
  const auto it = index_.find(id);
  return it == index_.end() ? -1 : it->second;
}

absl::StatusOr<int> NodeIds::Find(const JsonObject& edge, absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t id, edge.Integer(key, 0, kMostId));
  const int index = IndexOf(id);
  if (index < 0) return edge.Error(key, id, ": no node has this id");
  return index;
}

absl::StatusOr<std::pair<int, int>> NodeIds::AddEdge(const JsonObject& edge) {
  PIPELAB_ASSIGN_OR_RETURN(const int from, Find(edge, "sourceId"));
  PIPELAB_ASSIGN_OR_RETURN(const int to, Find(edge, "destId"));
  if (!edges_.emplace(from, to).second) {
    return edge.Error("sourceId", "the edge from ", ids_[from], " to ", ids_[to],
                      " is there twice");
  }
  inputs_[to].push_back(from);
  return std::make_pair(from, to);
}

absl::Status NodeIds::CheckAcyclic(absl::string_view what) const {
  const GraphOrder order = OrderNodes(inputs_);
  if (order.cycle.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": edges: cyclic nodes: ", CycleText(order.cycle, [&](int i) {
                     return absl::StrCat(ids_[i]);
                   })));
}

}  // namespace pipelab
