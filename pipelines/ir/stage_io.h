// Which device exchanges what with whom: the edges of a stage, cut to the rows that two group
// members share. Lower's table; nothing else needs it.
//
//   PIPELAB_ASSIGN_OR_RETURN(StageIoTable table, StageIoTable::Make(schedule));
//   for (const EdgeMessage& p : table.Of(replica, stage, device, micro_batch).in) { ... }
#ifndef PIPELAB_PIPELINES_IR_STAGE_IO_H_
#define PIPELAB_PIPELINES_IR_STAGE_IO_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// One message that a device sends or receives along an edge for each (micro-batch, slice).
struct EdgeMessage {
  int32_t edge = 0;
  int32_t piece = 0;  // its number among the edge's pieces (row_split.h) in the replica and message
  int16_t peer = 0;   // the other device
  // Rows of the message's micro-batch: [row_begin, row_end) / row_parts.
  int16_t row_begin = 0, row_end = 1, row_parts = 1;
  // The message's micro-batch, the smaller of the edge's two ends: `parts` * the stage's + `part`.
  int32_t parts = 1, part = 0;

  // The message of the samples that the stage counts as its pass `pass`.
  int MicroBatch(int pass) const { return pass * parts + part; }
};

// The messages of a stage on one device, with other devices only: what stays on a device makes no
// message.
struct StageIo {
  std::vector<EdgeMessage> in;   // along in_edges: activations arrive, their gradients leave
  std::vector<EdgeMessage> out;  // along out_edges: activations leave, their gradients arrive
};

class StageIoTable {
 public:
  // InvalidArgument when two groups would cut a message into more parts than it can say.
  static absl::StatusOr<StageIoTable> Make(const Schedule& schedule);

  // `device` is a member of the group of (replica, stage), `micro_batch` the stage's.
  const StageIo& Of(int replica, int stage, int device, int micro_batch) const {
    const std::vector<Member>& members = members_[replica][stage];
    size_t i = 0;
    while (members[i].device != device) ++i;
    const std::vector<StageIo>& phases = members[i].phases;
    return phases.size() == 1 ? phases[0] : phases[micro_batch % phases.size()];
  }
  // How many pieces a message of the edge has, at most over the replicas.
  int num_pieces(int edge) const { return num_pieces_[edge]; }

 private:
  struct Member {
    int device = 0;
    // By micro-batch, again and again: the parts of a larger micro-batch at the other end of an
    // edge differ.
    std::vector<StageIo> phases;
  };
  absl::Status AddEdge(const Schedule& s, int replica, int edge);

  std::vector<std::vector<std::vector<Member>>> members_;  // [replica][stage]
  std::vector<int> num_pieces_;                            // [edge]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_STAGE_IO_H_
