// The rows that the two ends of an edge have in common, device by device: what a message carries
// when stages differ in their device groups or in the size of their micro-batches.
//
//   ForEachPiece(schedule, replica, edge, [&](const Piece& p) { ... });
//
// A message belongs to one of the smaller micro-batches of the edge's two ends: with 4
// micro-batches at one end and 2 at the other, each of the 2 is sent, or received, in two messages.
#ifndef PIPELAB_PIPELINES_IR_ROW_SPLIT_H_
#define PIPELAB_PIPELINES_IR_ROW_SPLIT_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pipelines/ir/schedule.h"

namespace pipelab {

// Part `part` of the larger micro-batch of the two ends, which is one of the smaller micro-batches
// (0 where they are equal). `producer` and `consumer` are the members of the edge's groups that
// have the rows [row_begin, row_end) / row_parts of it.
struct Piece {
  int part = 0;
  int producer = 0, consumer = 0;
  int64_t row_begin = 0, row_end = 0, row_parts = 1;
};

// How many smallest micro-batches a message of the edge has.
inline int MessageSize(const Schedule& s, const StageGraph::Edge& e) {
  return std::min(s.MicroBatchSize(e.from), s.MicroBatchSize(e.to));
}

// How many of an edge's messages (with all their pieces) a micro-batch of `stage`, one of its ends,
// is.
inline int MessagesOf(const Schedule& s, const StageGraph::Edge& e, int stage) {
  return s.MicroBatchSize(stage) / MessageSize(s, e);
}

// After how many of the stage's micro-batches its pieces repeat: larger ones at the other ends have
// so many of them. Divides the stage's number of micro-batches.
inline int PhasesOf(const Schedule& s, int stage) {
  int phases = 1;
  for (const auto* edges : {&s.stages.in_edges[stage], &s.stages.out_edges[stage]}) {
    for (int edge : *edges) {
      const StageGraph::Edge& e = s.stages.edges[edge];
      phases = std::lcm(phases, MessagesOf(s, e, e.from == stage ? e.to : e.from));
    }
  }
  return phases;
}

// In the order of parts, then rows.
template <typename Fn>
void ForEachPiece(const Schedule& s, int replica, int edge, Fn&& fn) {
  const StageGraph::Edge& e = s.stages.edges[edge];
  const auto& groups = s.placement.groups[replica];
  const int64_t producers = static_cast<int64_t>(groups[e.from].size());
  const int64_t consumers = static_cast<int64_t>(groups[e.to].size());
  const int64_t parts_from = MessagesOf(s, e, e.from), parts_to = MessagesOf(s, e, e.to);
  // Rows of the message at which the share of one member ends and that of the next begins are
  // multiples of parts_from / producers and parts_to / consumers of it.
  const int64_t row_parts = std::lcm(producers / std::gcd(producers, parts_from),
                                     consumers / std::gcd(consumers, parts_to));
  const int64_t share_from = parts_from * row_parts / producers;
  const int64_t share_to = parts_to * row_parts / consumers;
  const int64_t all_parts = std::max(parts_from, parts_to);
  for (int64_t part = 0; part < all_parts; ++part) {
    // Where the message begins in the micro-batch of each end.
    const int64_t at_from = part % parts_from * row_parts, at_to = part % parts_to * row_parts;
    for (int64_t row = 0; row < row_parts;) {
      Piece p;
      p.part = static_cast<int>(part);
      p.producer = static_cast<int>((at_from + row) / share_from);
      p.consumer = static_cast<int>((at_to + row) / share_to);
      p.row_begin = row;
      p.row_end = std::min({row_parts, (p.producer + 1) * share_from - at_from,
                            (p.consumer + 1) * share_to - at_to});
      p.row_parts = row_parts;
      row = p.row_end;
      fn(p);
    }
  }
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_ROW_SPLIT_H_
