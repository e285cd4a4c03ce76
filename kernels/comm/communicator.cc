#include "kernels/comm/communicator.h"

#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status Communicator::AllReduce(const Tensor& data, absl::Span<const int> group,
                                     absl::Duration limit, ReduceOp op) {
  PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket, BeginAllReduce(data, group, op));
  return Wait(ticket, limit).status();
}

absl::Status Communicator::ReduceScatter(const Tensor& data, const Tensor& part,
                                         absl::Span<const int> group, absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket, BeginReduceScatter(data, part, group));
  return Wait(ticket, limit).status();
}

absl::Status Communicator::AllGather(const Tensor& part, const Tensor& data,
                                     absl::Span<const int> group, absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket, BeginAllGather(part, data, group));
  return Wait(ticket, limit).status();
}

absl::Status Communicator::AllToAll(const Tensor& data, absl::Span<const int64_t> to,
                                    const Tensor& result, absl::Span<const int64_t> from,
                                    absl::Span<const int> group, absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(const Ticket ticket, BeginAllToAll(data, to, result, from, group));
  return Wait(ticket, limit).status();
}

}  // namespace pipelab
