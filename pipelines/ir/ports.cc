#include "pipelines/ir/ports.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<PortTable> PortTable::Make(const Schedule& s) {
  PortTable table;
  table.num_pieces_.resize(s.stages.edges.size(), 0);
  table.members_.resize(s.placement.num_replicas());
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    table.members_[r].resize(s.num_stages());
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      for (int device : s.placement.groups[r][stage]) {
        table.members_[r][stage].push_back({device, {}});
      }
    }
    // Ports stand in edge order, then in row order.
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      for (int edge : s.stages.out_edges[stage]) {
        PIPELAB_RETURN_IF_ERROR(table.AddEdge(s, r, edge));
      }
    }
    for (auto& stage : table.members_[r]) {
      for (Member& member : stage) {
        std::stable_sort(member.ports.in.begin(), member.ports.in.end(),
                         [](const Port& a, const Port& b) { return a.edge < b.edge; });
      }
    }
  }
  return table;
}

absl::Status PortTable::AddEdge(const Schedule& s, int replica, int edge) {
  const StageGraph::Edge& e = s.stages.edges[edge];
  std::vector<Member>& producers = members_[replica][e.from];
  std::vector<Member>& consumers = members_[replica][e.to];
  const int64_t parts = std::lcm<int64_t>(producers.size(), consumers.size());
  if (parts > std::numeric_limits<int16_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stages ", e.from, " and ", e.to, " have ", producers.size(), " and ",
                     consumers.size(), " devices; their rows would be cut into ", parts, " parts"));
  }
  const int64_t rows_from = parts / static_cast<int64_t>(producers.size());
  const int64_t rows_to = parts / static_cast<int64_t>(consumers.size());
  // Walks both lists of row ranges side by side; each overlap is a piece.
  int piece = 0;
  size_t from = 0, to = 0;
  while (from < producers.size() && to < consumers.size()) {
    const int64_t end_from = static_cast<int64_t>(from + 1) * rows_from;
    const int64_t end_to = static_cast<int64_t>(to + 1) * rows_to;
    Port port;
    port.edge = edge;
    port.piece = piece++;
    port.row_begin = static_cast<int16_t>(
        std::max(static_cast<int64_t>(from) * rows_from, static_cast<int64_t>(to) * rows_to));
    port.row_end = static_cast<int16_t>(std::min(end_from, end_to));
    port.row_parts = static_cast<int16_t>(parts);
    if (producers[from].device != consumers[to].device) {
      port.peer = static_cast<int16_t>(consumers[to].device);
      producers[from].ports.out.push_back(port);
      port.peer = static_cast<int16_t>(producers[from].device);
      consumers[to].ports.in.push_back(port);
    }
    if (end_from <= end_to) ++from;
    if (end_to <= end_from) ++to;
  }
  num_pieces_[edge] = std::max(num_pieces_[edge], piece);
  return absl::OkStatus();
}

}  // namespace pipelab
