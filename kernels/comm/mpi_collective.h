// One collective of a device over an MpiEngine, from its begin to its end.
//
//   auto call = MpiCollective::AllReduce(engine, device, number, data, group, op);
//   ... other work ...
//   PIPELAB_RETURN_IF_ERROR(call->Finish(limit));
//
// Every member sends to every other: a reduction's parts to those who sum them, in group order with
// the function that in-process devices use (sum.h), so bits are the same; then an all-reduce's sums
// to everybody. That is a ring's number of bytes, in fewer steps. Parts of others wait in memory
// that nobody is charged for, as a transport's own. A member that brings nothing to another says
// so: who is missing can be named, and that all call the same is checked.
#ifndef PIPELAB_KERNELS_COMM_MPI_COLLECTIVE_H_
#define PIPELAB_KERNELS_COMM_MPI_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/mpi_engine.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

class MpiCollective {
 public:
  // `number`: how many collectives this group had before, on this device. Arguments are right.
  // `data` is what the member brings (of an all-gather its part; of a broadcast everybody's own),
  // `result` where the result goes; the same tensor for an all-reduce and a broadcast. `to` and
  // `from`: elements for and from each member, of an all-to-all.
  MpiCollective(MpiEngine* engine, int device, CollectiveOp op, int root,
                absl::Span<const int> group, int64_t number, const Tensor& data,
                const Tensor& result, absl::Span<const int64_t> to, absl::Span<const int64_t> from);

  absl::Status Finish(absl::Duration limit);

 private:
  struct Range {
    int64_t begin = 0, end = 0;  // bytes
  };
  using Incoming = std::vector<std::shared_ptr<MpiIncoming>>;  // [member]; null of one's own
  using Outgoing = std::vector<std::shared_ptr<MpiOutgoing>>;

  // What member i sums, of an all-reduce: whole cache lines.
  Range Chunk(int i) const;
  // The part of member i, of an all-to-all.
  static Range PartOf(const std::vector<int64_t>& parts, int i, DataType type);
  void Start();
  void SendTo(int member, int phase, const Tensor& from, Range range);
  void ReceiveFrom(int member, int phase, void* buffer, int64_t bytes, Tensor keep);
  absl::Status AwaitAll(absl::Time deadline, absl::Duration limit);
  absl::Status CheckSame();
  void Reduce(Range own, void* output);
  absl::Status SpreadSums(absl::Time deadline, absl::Duration limit);
  int size() const { return static_cast<int>(group_.size()); }

  MpiEngine* const engine_;
  const int device_;
  const CollectiveClaim claim_;
  const std::vector<int> group_;
  const int me_;
  const int64_t number_;
  uint64_t hash_ = 0;     // of the group
  Tensor data_, result_;  // uncharged
  std::vector<int64_t> to_, from_;
  Tensor scratch_;  // others' parts, one after the other
  Incoming in_;
  Outgoing out_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_MPI_COLLECTIVE_H_
