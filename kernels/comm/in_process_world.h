// What the ranks of one in-process run share: the mail of every ordered pair, where ranks sleep,
// the meeting points of collectives, and how the run ended.
//
//   auto world = std::make_shared<InProcessWorld>(4, InProcessOptions{});
//   world->pair(0, 1).mail.Push(...);  world->parker(1).Unpark();
//   absl::Status s = world->Await(1, ready, limit, [] { return "rank 1 waited for ..."; });
//
// Only kernels/comm uses it.
#ifndef PIPELAB_KERNELS_COMM_IN_PROCESS_WORLD_H_
#define PIPELAB_KERNELS_COMM_IN_PROCESS_WORLD_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/parker.h"
#include "kernels/comm/spsc_queue.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

struct Envelope {
  Tensor tensor;  // charged to nobody while on its way
  uint64_t tag = 0;
};

// One direction between two ranks.
struct Pair {
  SpscQueue<Envelope> mail;
  std::atomic<int64_t> posted{0};  // receives posted so far: rendezvous sends wait for it
};

// How far a member has come in a collective.
enum class CollectivePhase : uint8_t { kAbsent, kContributed, kFinished };

// What one member brings to a collective. Written by the member before it advances `phase`; read by
// the others after they saw the phase.
struct alignas(64) Contribution {
  CollectiveOp collective = CollectiveOp::kNone;
  int root = -1;
  std::vector<int64_t> to;  // elements for each member, of an all-to-all
  Tensor tensor;            // uncharged; keeps the memory alive when the owner leaves on an error
  std::atomic<CollectivePhase> phase{CollectivePhase::kAbsent};
};

// One collective of a group, from its first member's begin to its last member's end.
struct Meeting {
  explicit Meeting(size_t size) : members(size) {}
  // The first member that has not come that far, or -1.
  int Missing(CollectivePhase phase) const {
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i].phase.load() < phase) return static_cast<int>(i);
    }
    return -1;
  }
  std::vector<Contribution> members;
};

// The collectives of one group of ranks; lives as long as the world. Members begin them in the same
// order, so the n-th of one member is the n-th of all.
class Group {
 public:
  explicit Group(absl::Span<const int> group)
      : ranks_(group.begin(), group.end()), begun_(group.size(), 0) {}

  const std::vector<int>& ranks() const { return ranks_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  // The collective that `member` begins now.
  std::shared_ptr<Meeting> Next(int member);
  // Lets go of collectives that are over.
  void Tidy();

 private:
  const std::vector<int> ranks_;
  std::mutex mutex_;
  std::vector<int64_t> begun_;                     // [member]
  std::deque<std::shared_ptr<Meeting>> meetings_;  // under way, from number first_
  int64_t first_ = 0;
};

class InProcessWorld {
 public:
  InProcessWorld(int size, const InProcessOptions& options);

  int size() const { return size_; }
  bool rendezvous() const { return rendezvous_; }
  // What the rank computes on; null: the host.
  Memory* device(int rank) const { return devices_.empty() ? nullptr : devices_[rank].get(); }
  // Waits for what the rank's device has been given to do.
  absl::Status FinishQueued(int rank) {
    if (device(rank) == nullptr) return absl::OkStatus();
    absl::Status status = device(rank)->Finish();
    return status.ok() ? status : Fail(std::move(status));
  }
  Pair& pair(int from, int to) { return pairs_[from * size_ + to]; }
  Parker& parker(int rank) { return parkers_[rank]; }
  Group& group(absl::Span<const int> ranks);

  // Ends the run with `why` unless it has ended already, and wakes everybody. Returns what the
  // caller has to report: `why`, or the earlier error, marked as a follow-up.
  absl::Status Fail(absl::Status why);
  // OK while the run goes on.
  absl::Status Check() const {
    return aborted_.load(std::memory_order_acquire) ? Ended() : absl::OkStatus();
  }

  // Lets `rank` wait for ready(). Past the limit the run ends with DeadlineExceeded and describe().
  template <typename Ready, typename Describe>
  absl::Status Await(int rank, Ready ready, absl::Duration limit, Describe describe) {
    const bool in_time =
        parkers_[rank].ParkUntil([&] { return aborted_.load() || ready(); }, limit);
    if (!in_time) return Fail(absl::DeadlineExceededError(describe()));
    return Check();
  }

 private:
  absl::Status Ended() const;

  const int size_;
  const bool rendezvous_;
  const std::vector<Memory::Shared> devices_;  // [rank], or empty
  std::vector<Pair> pairs_;                    // [from * size + to]
  std::vector<Parker> parkers_;

  std::mutex groups_mutex_;
  std::map<std::vector<int>, std::unique_ptr<Group>> groups_;

  std::atomic<bool> aborted_{false};
  mutable std::mutex why_mutex_;
  absl::Status why_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_IN_PROCESS_WORLD_H_
