// The heads that go ahead of bytes between processes, and the one place where what has come is
// checked before anybody uses it: an enumeration, a rank or a number of dimensions from the wire
// bounds an array, and is no better than the process that sent it.
//
//   PIPELAB_ASSIGN_OR_RETURN(const MpiHead head, ReadMpiHead(message, process, process_of));
//   PIPELAB_ASSIGN_OR_RETURN(const TensorSpec spec, SpecOf(head, head.from));
//   PIPELAB_ASSIGN_OR_RETURN(const CollectiveClaim claim, ClaimOf(head, head.from));
//
// Errors are DataLoss: "rank 2 sent a head with 9 dimensions; at most 8 can be".
#ifndef PIPELAB_KERNELS_COMM_WIRE_HEAD_H_
#define PIPELAB_KERNELS_COMM_WIRE_HEAD_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// What a message or a member's part in a collective is.
struct WireHead {
  static constexpr int32_t kMostDims = 8;

  uint64_t tag = 0;  // message: the caller's; MPI's collectives: of their group
  int32_t type = 0, dims = 0;
  std::array<int64_t, kMostDims> shape{};  // of a message
  int32_t op = 0, root = 0;                // of a collective
  int64_t size = 0;                        // of a collective: elements that the member brings
};

struct MpiHead : WireHead {
  int32_t from = 0, to = 0;  // devices
  int64_t bytes = 0;
  int64_t number = -1;     // collective: how many the group had before; -1: a message
  int32_t phase = 0;       // of a collective
  int32_t bytes_tag = -1;  // under which the bytes follow; -1: they are in the head's message
};

// Type and shape of `tensor` into `head`. InvalidArgument where it has too many dimensions.
absl::Status SetSpec(const Tensor& tensor, int rank, WireHead* head);

// What the head says that rank `peer` sends: a type and sizes that can be, and whose bytes are a
// number.
absl::StatusOr<TensorSpec> SpecOf(const WireHead& head, int peer);
absl::StatusOr<CollectiveClaim> ClaimOf(const WireHead& head, int peer);

// The head of a message that has come from `process`, from one of its devices to one of `own`, with
// its bytes behind it unless they follow; `process_of`: [device]. A message of a tensor (number <
// 0) has the bytes of its type and shape.
absl::StatusOr<MpiHead> ReadMpiHead(absl::string_view message, int process, int own,
                                    const std::vector<int>& process_of);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_WIRE_HEAD_H_
