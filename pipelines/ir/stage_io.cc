#include "pipelines/ir/stage_io.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/row_split.h"
#include "tools/base/status_macros.h"

namespace pipelab {

namespace {

// The part of `stage`'s micro-batch, and in which of its phases, that a piece's message is.
void AddMessage(const Schedule& s, const StageGraph::Edge& e, int stage, const Piece& piece,
                EdgeMessage message, bool out, std::vector<StageIo>* phases) {
  message.parts = MessagesOf(s, e, stage);
  message.part = piece.part % message.parts;
  // Where the other end's micro-batch is the larger one, the piece is of one in so many.
  const int other = MessagesOf(s, e, e.from == stage ? e.to : e.from);
  for (size_t phase = piece.part % other; phase < phases->size(); phase += other) {
    StageIo& stage_io = (*phases)[phase];
    (out ? stage_io.out : stage_io.in).push_back(message);
  }
}

}  // namespace

absl::StatusOr<StageIoTable> StageIoTable::Make(const Schedule& s) {
  StageIoTable table;
  table.num_pieces_.resize(s.stages.edges.size(), 0);
  table.members_.resize(s.placement.num_replicas());
  for (int r = 0; r < s.placement.num_replicas(); ++r) {
    table.members_[r].resize(s.num_stages());
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      const std::vector<StageIo> phases(PhasesOf(s, stage));
      for (int device : s.placement.groups[r][stage]) {
        table.members_[r][stage].push_back({device, phases});
      }
    }
    // Messages stand in edge order, then in row order.
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      for (int edge : s.stages.out_edges[stage]) {
        PIPELAB_RETURN_IF_ERROR(table.AddEdge(s, r, edge));
      }
    }
    for (auto& stage : table.members_[r]) {
      for (Member& member : stage) {
        for (StageIo& stage_io : member.phases) {
          std::stable_sort(
              stage_io.in.begin(), stage_io.in.end(),
              [](const EdgeMessage& a, const EdgeMessage& b) { return a.edge < b.edge; });
        }
      }
    }
  }
  return table;
}

absl::Status StageIoTable::AddEdge(const Schedule& s, int replica, int edge) {
  const StageGraph::Edge& e = s.stages.edges[edge];
  std::vector<Member>& producers = members_[replica][e.from];
  std::vector<Member>& consumers = members_[replica][e.to];
  int64_t row_parts = 0;
  int part = 0, piece_of_part = 0;
  ForEachPiece(s, replica, edge, [&](const Piece& piece) {
    row_parts = piece.row_parts;
    if (row_parts > std::numeric_limits<int16_t>::max()) return;
    if (piece.part != part) piece_of_part = 0;
    part = piece.part;
    EdgeMessage message;
    message.edge = edge;
    message.piece = piece_of_part++;
    message.row_begin = static_cast<int16_t>(piece.row_begin);
    message.row_end = static_cast<int16_t>(piece.row_end);
    message.row_parts = static_cast<int16_t>(piece.row_parts);
    num_pieces_[edge] = std::max(num_pieces_[edge], piece_of_part);
    Member &from = producers[piece.producer], &to = consumers[piece.consumer];
    if (from.device == to.device) return;
    message.peer = static_cast<int16_t>(to.device);
    AddMessage(s, e, e.from, piece, message, /*out=*/true, &from.phases);
    message.peer = static_cast<int16_t>(from.device);
    AddMessage(s, e, e.to, piece, message, /*out=*/false, &to.phases);
  });
  if (row_parts <= std::numeric_limits<int16_t>::max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "stages ", e.from, " and ", e.to, " have ", producers.size(), " and ", consumers.size(),
      " devices; their rows would be cut into ", row_parts, " parts"));
}

}  // namespace pipelab
