// Which device exchanges what with whom: the edges of a stage, cut to the rows that two group
// members share. Lower's table; nothing else needs it.
//
//   PIPELAB_ASSIGN_OR_RETURN(PortTable table, PortTable::Make(schedule));
//   for (const Port& p : table.Of(replica, stage, device).in) { ... }
#ifndef PIPELAB_PIPELINES_IR_PORTS_H_
#define PIPELAB_PIPELINES_IR_PORTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// One message that a device sends or receives along an edge for each (micro-batch, slice).
struct Port {
  int32_t edge = 0;
  int32_t piece = 0;  // number of the (producer, consumer) pair among the edge's in its replica
  int16_t peer = 0;   // the other device
  // Rows of the micro-batch: [row_begin, row_end) / row_parts.
  int16_t row_begin = 0, row_end = 1, row_parts = 1;
};

// Ports to other devices only: what stays on a device makes no message.
struct Ports {
  std::vector<Port> in;   // along in_edges: activations arrive, their gradients leave
  std::vector<Port> out;  // along out_edges: activations leave, their gradients arrive
};

class PortTable {
 public:
  // InvalidArgument when two groups' sizes have a least common multiple beyond what a message can
  // hold.
  static absl::StatusOr<PortTable> Make(const Schedule& schedule);

  // `device` is a member of the group of (replica, stage).
  const Ports& Of(int replica, int stage, int device) const {
    const std::vector<Member>& members = members_[replica][stage];
    size_t i = 0;
    while (members[i].device != device) ++i;
    return members[i].ports;
  }
  // How many pieces the edge has, at most over the replicas.
  int num_pieces(int edge) const { return num_pieces_[edge]; }

 private:
  struct Member {
    int device = 0;
    Ports ports;
  };
  absl::Status AddEdge(const Schedule& s, int replica, int edge);

  std::vector<std::vector<std::vector<Member>>> members_;  // [replica][stage]
  std::vector<int> num_pieces_;                            // [edge]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_PORTS_H_
