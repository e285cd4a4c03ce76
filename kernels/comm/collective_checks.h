// What every transport says of collectives: their names, which groups and sizes are right, and how
// members disagree.
#ifndef PIPELAB_KERNELS_COMM_COLLECTIVE_CHECKS_H_
#define PIPELAB_KERNELS_COMM_COLLECTIVE_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/communicator.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

enum class CollectiveOp : uint8_t {
  kNone,
  kAllReduce,
  kAllReduceMax,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kAllToAll
};
const char* CollectiveName(CollectiveOp c);

// InvalidArgument unless the group is ascending ranks below `size` and `rank` is one of them;
// unless `data` is as many parts as there are members; unless the root is a member.
absl::Status CheckGroup(int size, int rank, absl::Span<const int> group);
absl::Status CheckParts(const Tensor& data, const Tensor& part, absl::Span<const int> group);
absl::Status CheckRoot(int root, absl::Span<const int> group);
// Unless `rank` has a part for each member and from each, its own of one size, which fit.
absl::Status CheckExchange(const Tensor& data, absl::Span<const int64_t> to, const Tensor& result,
                           absl::Span<const int64_t> from, absl::Span<const int> group, int rank);
// Elements of an all-to-all's tensor before the part of member i.
int64_t PartBegin(absl::Span<const int64_t> parts, int i);
// DataLoss: "rank 1 sent 8 bytes to a collective that takes 4".
absl::Status WrongPart(int rank, int64_t sent, int64_t taken);

// What one member calls. `root`: a rank, -1 where there is none.
struct CollectiveClaim {
  CollectiveOp op = CollectiveOp::kNone;
  int root = -1;
  DataType type = DataType::kFloat32;
  int64_t size = 0;  // elements that it brings; of an all-to-all 0
};
bool operator==(const CollectiveClaim& a, const CollectiveClaim& b);
// Internal: "members of group {0, 1} disagree: rank 0 calls ..., rank 1 calls ...".
absl::Status Disagreement(absl::Span<const int> group, int rank_a, const CollectiveClaim& a,
                          int rank_b, const CollectiveClaim& b);

// "rank 0 waited 5s for rank 1 in the all-reduce of ranks {0, 1, 2}".
std::string WaitedInCollective(int rank, absl::Duration limit, int missing, CollectiveOp op,
                               absl::Span<const int> group);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_COLLECTIVE_CHECKS_H_
