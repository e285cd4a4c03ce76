// Collectives between threads: every member shows its tensor and goes on; who waits meets all the
// others, does its share of the work directly in their memory, and leaves when all have.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto c, CollectiveCall::AllReduce(world, rank, data, group, op));
//   ... other work ...
//   PIPELAB_RETURN_IF_ERROR(c->Finish(limit));
//
// All the work is done in Finish, so none of it runs beside the other work of its member
// (Communicator::collectives_work_at_wait). Arguments are checked here; see communicator.h for what
// the calls promise.
#ifndef PIPELAB_KERNELS_COMM_IN_PROCESS_COLLECTIVES_H_
#define PIPELAB_KERNELS_COMM_IN_PROCESS_COLLECTIVES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/in_process_world.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// One member's part in one collective.
class CollectiveCall {
 public:
  using Result = absl::StatusOr<std::unique_ptr<CollectiveCall>>;
  static Result AllReduce(InProcessWorld& world, int rank, const Tensor& data,
                          absl::Span<const int> group, ReduceOp op);
  static Result ReduceScatter(InProcessWorld& world, int rank, const Tensor& data,
                              const Tensor& part, absl::Span<const int> group);
  static Result AllGather(InProcessWorld& world, int rank, const Tensor& part, const Tensor& data,
                          absl::Span<const int> group);
  static Result AllToAll(InProcessWorld& world, int rank, const Tensor& data,
                         absl::Span<const int64_t> to, const Tensor& result,
                         absl::Span<const int64_t> from, absl::Span<const int> group);
  static Result Broadcast(InProcessWorld& world, int rank, const Tensor& data, int root,
                          absl::Span<const int> group);

  // Ends it. A member that leaves early, because the run ended, leaves its contribution behind, and
  // with it the memory that others may still be reading.
  absl::Status Finish(absl::Duration limit);

 private:
  CollectiveCall(InProcessWorld& world, int rank, CollectiveOp collective,
                 absl::Span<const int> group);
  // Shows `tensor` to the others, once the work on it that is queued is done.
  absl::Status Contribute(const Tensor& tensor, int root = -1);
  // This member has come that far; waits for the others.
  void Advance(CollectivePhase phase);
  absl::Status Await(CollectivePhase phase, absl::Duration limit);
  absl::Status CheckSame(int i, int j);
  // That everybody sends this member what it waits for.
  absl::Status CheckSent();
  void TakeParts();
  // This member's share of the work.
  void Work();
  void ReduceMyChunk();

  InProcessWorld& world_;
  const int rank_;
  const CollectiveOp collective_;
  Group& group_;
  const int me_;
  std::shared_ptr<Meeting> meeting_;
  Tensor result_;              // where this member's result goes; uncharged, like the contribution
  int root_ = -1;              // member
  std::vector<int64_t> from_;  // elements of each member, of an all-to-all
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_IN_PROCESS_COLLECTIVES_H_
