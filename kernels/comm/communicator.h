// Messages and collectives between the devices of one run. One object a rank (device), used by that
// rank's thread only; Abort may be called from any thread.
//
//   std::vector<std::unique_ptr<Communicator>> ranks = MakeInProcessCommunicators(4, {});
//   // rank 0:                                   // rank 1:
//   ranks[0]->Send(std::move(x), 1, tag);        auto t = ranks[1]->Receive(spec, 0, tag, charge);
//                                                auto x = ranks[1]->Wait(t, absl::Seconds(30));
//
// Messages of an ordered pair match in order, as in NCCL; the tag and the shape are checked, not
// searched. Every wait has a limit. An error of the transport (a limit that is over, a message that
// is not what was expected) ends the run for all ranks, as Abort does: from then on every call of
// every rank returns the first error. Arguments that cannot be right give InvalidArgument and end
// nothing.
#ifndef PIPELAB_KERNELS_COMM_COMMUNICATOR_H_
#define PIPELAB_KERNELS_COMM_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/follow_up.h"  // IWYU pragma: export
#include "kernels/tensor/arena.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

// What a posted receive expects: checked against what comes.
struct TensorSpec {
  DataType type = DataType::kFloat32;
  Shape shape;
};

// An operation under way. Tickets of a rank are waited for in any order, each once; those of
// collectives in one order by all members.
using Ticket = int64_t;

// What an all-reduce does with the elements of its members.
enum class ReduceOp : uint8_t { kSum, kMax };

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual absl::string_view name() const = 0;  // "in-process", "mpi", "nccl"
  // Whether the sums and copies of a collective are made by the members inside Wait, so that they
  // do not run beside what a rank computes between begin and wait: true of all that there are so
  // far.
  virtual bool collectives_work_at_wait() const = 0;

  // Starts sending and returns. The tensor is given up: in-process its memory goes to the receiver
  // without a copy, so the sender must not write to it again. The ticket is done when the transport
  // no longer needs the sender: at once in-process, unless sends are set to wait for their
  // receiver.
  virtual absl::StatusOr<Ticket> Send(Tensor tensor, int to, uint64_t tag) = 0;
  // Posts a receive and returns. `charge` pays for the memory from now on.
  virtual absl::StatusOr<Ticket> Receive(TensorSpec spec, int from, uint64_t tag,
                                         std::shared_ptr<Charge> charge) = 0;
  // Waits for a ticket: the received tensor, an empty one for sends. DeadlineExceeded after
  // `limit`: the message says which peer and tag were waited for.
  virtual absl::StatusOr<Tensor> Wait(Ticket ticket, absl::Duration limit) = 0;
  // Whether a message that is to be received is there, or the run is over, so that Wait returns at
  // once. False where it may be there and nobody knows.
  virtual bool Arrived(Ticket /*ticket*/) { return false; }

  // Collectives over `group` (ranks, ascending; the caller is one of them). All members begin the
  // collectives of a group in the same order, with the same sizes; and any two members wait for
  // those that they share in the same order. Sums are taken in group order on every rank: the same
  // bits everywhere.
  //
  // Begin returns a ticket; Wait gives an empty tensor when the result is there and the tensors are
  // the caller's again. Until then nobody may write to them, nor read where results go.
  virtual absl::StatusOr<Ticket> BeginAllReduce(const Tensor& data, absl::Span<const int> group,
                                                ReduceOp op) = 0;
  // `data` has group.size() equal parts; part i of the sum ends in `part` of member i, which may be
  // that part of its `data`.
  virtual absl::StatusOr<Ticket> BeginReduceScatter(const Tensor& data, const Tensor& part,
                                                    absl::Span<const int> group) = 0;
  // The other way: `part` of member i becomes part i of everybody's `data`.
  virtual absl::StatusOr<Ticket> BeginAllGather(const Tensor& part, const Tensor& data,
                                                absl::Span<const int> group) = 0;
  // Parts of unequal sizes: of `data`, which has them one after the other, `to[i]` elements go to
  // member i, and its `from[i]` elements come to `result`, in group order. Both tensors may be
  // longer than their parts, parts may be empty, and the tensors are different ones. DataLoss, for
  // all, where a member sends another number than the other one waits for.
  virtual absl::StatusOr<Ticket> BeginAllToAll(const Tensor& data, absl::Span<const int64_t> to,
                                               const Tensor& result, absl::Span<const int64_t> from,
                                               absl::Span<const int> group) = 0;
  // Begun and waited for.
  absl::Status AllReduce(const Tensor& data, absl::Span<const int> group, absl::Duration limit,
                         ReduceOp op = ReduceOp::kSum);
  absl::Status ReduceScatter(const Tensor& data, const Tensor& part, absl::Span<const int> group,
                             absl::Duration limit);
  absl::Status AllGather(const Tensor& part, const Tensor& data, absl::Span<const int> group,
                         absl::Duration limit);
  absl::Status AllToAll(const Tensor& data, absl::Span<const int64_t> to, const Tensor& result,
                        absl::Span<const int64_t> from, absl::Span<const int> group,
                        absl::Duration limit);
  virtual absl::Status Broadcast(const Tensor& data, int root, absl::Span<const int> group,
                                 absl::Duration limit) = 0;

  // What this rank is doing, in words ("device 2 is in 1F3"), for errors that other processes see.
  // Called by any thread until it is replaced. In-process nobody asks.
  virtual void SetWhereabouts(std::function<std::string()> /*text*/) {}

  // Ends the run for all ranks: pending and later calls return `why`. The first call wins.
  virtual void Abort(absl::Status why) = 0;
};

struct InProcessOptions {
  // Sends complete only when their receive is posted (how a transport without buffers behaves): a
  // Wait for a send blocks until then.
  bool rendezvous = false;
  // What each rank computes on; empty: the host. A send and a collective wait for the work that is
  // queued there, and a received tensor's memory is not reused before the receiver's work on it.
  std::vector<Memory::Shared> devices = {};
};

// One communicator a rank, all in this process; ranks are threads.
std::vector<std::unique_ptr<Communicator>> MakeInProcessCommunicators(
    int size, const InProcessOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_COMMUNICATOR_H_
