// A collective of one rank with the members of a group over NCCL: each shows the others what it
// calls, then bytes go pair by pair, and the device adds them in group order.
//
//   NcclCollective call(&world, claim, group, data, result);
//   PIPELAB_RETURN_IF_ERROR(call.Finish(limit));
//
// All of it is done in Finish: members wait for those that they share in one order, and each begins
// them where it likes. Only kernels/comm uses it.
#ifndef PIPELAB_KERNELS_CUDA_NCCL_COLLECTIVE_H_
#define PIPELAB_KERNELS_CUDA_NCCL_COLLECTIVE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/cuda/nccl_link.h"
#include "kernels/cuda/nccl_world.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

class NcclCollective {
 public:
  NcclCollective(NcclWorld* world, CollectiveOp op, int root, absl::Span<const int> group,
                 const Tensor& data, const Tensor& result, absl::Span<const int64_t> to,
                 absl::Span<const int64_t> from);
  absl::Status Finish(absl::Duration limit);

 private:
  struct Member {
    std::unique_ptr<NcclBytes> heads;  // the own one, then the other's
    std::unique_ptr<NcclEvent> event;
  };
  // What goes to a member and what comes from it.
  struct Transfer {
    const void* out;
    int64_t out_bytes;
    void* in;
    int64_t in_bytes;
  };

  absl::Status ShowClaims();
  absl::Status CheckClaims();
  // Starts an exchange with each other member: bytes(place in the group).
  absl::Status Exchange(const std::function<Transfer(int)>& bytes);
  absl::Status AwaitExchange(absl::Duration limit);
  // Elements that member i adds up, of an all-reduce.
  std::pair<int64_t, int64_t> ChunkOf(int i) const;
  // Everybody's elements part(this member), added in group order to `output`.
  absl::Status Gathered(absl::Duration limit,
                        const std::function<std::pair<int64_t, int64_t>(int)>& part, void* output);
  absl::Status AllReduce(absl::Duration limit);
  absl::Status ReduceScatter(absl::Duration limit);
  absl::Status AllGather(absl::Duration limit);
  absl::Status Broadcast(absl::Duration limit);
  absl::Status AllToAll(absl::Duration limit);

  NcclWorld& world_;
  const CollectiveClaim claim_;
  const std::vector<int> group_;
  const int me_;                // place in the group
  const Tensor data_, result_;  // uncharged
  // Elements for and from each member, of an all-to-all. A head to a member says the first.
  const std::vector<int64_t> to_, from_;
  std::vector<Member> members_;  // by place in the group; the own one is empty
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_NCCL_COLLECTIVE_H_
