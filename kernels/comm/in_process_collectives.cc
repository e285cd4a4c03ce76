#include "kernels/comm/in_process_collectives.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/memory/memory.h"
#include "kernels/comm/collective_checks.h"
#include "kernels/comm/sum.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Copies unless both are the same memory (a part that already lies in its place).
void CopyBytes(Memory* device, const void* from, void* to, int64_t bytes) {
  if (from == to || bytes == 0) return;
  if (device == nullptr) {
    std::memcpy(to, from, bytes);
  } else {
    device->Copy(from, to, bytes);
  }
}

Tensor Uncharged(const Tensor& tensor) { return Tensor(tensor).Adopt(nullptr); }

}  // namespace

CollectiveCall::CollectiveCall(InProcessWorld& world, int rank, CollectiveOp collective,
                               absl::Span<const int> group)
    : world_(world),
      rank_(rank),
      collective_(collective),
      group_(world.group(group)),
      me_(static_cast<int>(std::lower_bound(group.begin(), group.end(), rank) - group.begin())),
      meeting_(group_.Next(me_)) {}

CollectiveCall::Result CollectiveCall::AllReduce(InProcessWorld& world, int rank,
                                                 const Tensor& data, absl::Span<const int> group,
                                                 ReduceOp op) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world.size(), rank, group));
  const auto kind = op == ReduceOp::kMax ? CollectiveOp::kAllReduceMax : CollectiveOp::kAllReduce;
  auto call = absl::WrapUnique(new CollectiveCall(world, rank, kind, group));
  PIPELAB_RETURN_IF_ERROR(call->Contribute(data));
  return call;
}

CollectiveCall::Result CollectiveCall::ReduceScatter(InProcessWorld& world, int rank,
                                                     const Tensor& data, const Tensor& part,
                                                     absl::Span<const int> group) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world.size(), rank, group));
  PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
  auto call =
      absl::WrapUnique(new CollectiveCall(world, rank, CollectiveOp::kReduceScatter, group));
  call->result_ = Uncharged(part);
  PIPELAB_RETURN_IF_ERROR(call->Contribute(data));
  return call;
}

CollectiveCall::Result CollectiveCall::AllGather(InProcessWorld& world, int rank,
                                                 const Tensor& part, const Tensor& data,
                                                 absl::Span<const int> group) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world.size(), rank, group));
  PIPELAB_RETURN_IF_ERROR(CheckParts(data, part, group));
  auto call = absl::WrapUnique(new CollectiveCall(world, rank, CollectiveOp::kAllGather, group));
  call->result_ = Uncharged(data);
  PIPELAB_RETURN_IF_ERROR(call->Contribute(part));
  return call;
}

CollectiveCall::Result CollectiveCall::AllToAll(InProcessWorld& world, int rank, const Tensor& data,
                                                absl::Span<const int64_t> to, const Tensor& result,
                                                absl::Span<const int64_t> from,
                                                absl::Span<const int> group) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world.size(), rank, group));
  PIPELAB_RETURN_IF_ERROR(CheckExchange(data, to, result, from, group, rank));
  auto call = absl::WrapUnique(new CollectiveCall(world, rank, CollectiveOp::kAllToAll, group));
  call->result_ = Uncharged(result);
  call->from_.assign(from.begin(), from.end());
  call->meeting_->members[call->me_].to.assign(to.begin(), to.end());
  PIPELAB_RETURN_IF_ERROR(call->Contribute(data));
  return call;
}

CollectiveCall::Result CollectiveCall::Broadcast(InProcessWorld& world, int rank,
                                                 const Tensor& data, int root,
                                                 absl::Span<const int> group) {
  PIPELAB_RETURN_IF_ERROR(CheckGroup(world.size(), rank, group));
  PIPELAB_RETURN_IF_ERROR(CheckRoot(root, group));
  auto call = absl::WrapUnique(new CollectiveCall(world, rank, CollectiveOp::kBroadcast, group));
  call->result_ = Uncharged(data);
  call->root_ =
      static_cast<int>(std::lower_bound(group.begin(), group.end(), root) - group.begin());
  PIPELAB_RETURN_IF_ERROR(call->Contribute(data, root));
  return call;
}

absl::Status CollectiveCall::Contribute(const Tensor& tensor, int root) {
  PIPELAB_RETURN_IF_ERROR(world_.FinishQueued(rank_));
  Contribution& mine = meeting_->members[me_];
  mine.collective = collective_;
  mine.root = root;
  mine.tensor = Uncharged(tensor);
  Advance(CollectivePhase::kContributed);
  return absl::OkStatus();
}

void CollectiveCall::Advance(CollectivePhase phase) {
  meeting_->members[me_].phase.store(phase);
  for (int r : group_.ranks()) {
    if (r != rank_) world_.parker(r).Unpark();
  }
}

absl::Status CollectiveCall::Await(CollectivePhase phase, absl::Duration limit) {
  return world_.Await(
      rank_, [&] { return meeting_->Missing(phase) < 0; }, limit,
      [&] {
        const int i = meeting_->Missing(phase);
        return WaitedInCollective(rank_, limit, group_.ranks()[i < 0 ? 0 : i], collective_,
                                  group_.ranks());
      });
}

absl::Status CollectiveCall::CheckSame(int i, int j) {
  const auto claim = [&](int member) {
    const Contribution& c = meeting_->members[member];
    const int64_t size = c.collective == CollectiveOp::kAllToAll ? 0 : c.tensor.size();
    return CollectiveClaim{c.collective, c.root, c.tensor.type(), size};
  };
  const CollectiveClaim a = claim(i), b = claim(j);
  if (a == b) return absl::OkStatus();
  return world_.Fail(Disagreement(group_.ranks(), group_.ranks()[i], a, group_.ranks()[j], b));
}

absl::Status CollectiveCall::Finish(absl::Duration limit) {
  PIPELAB_RETURN_IF_ERROR(Await(CollectivePhase::kContributed, limit));
  for (int i = 1; i < group_.size(); ++i) PIPELAB_RETURN_IF_ERROR(CheckSame(0, i));
  PIPELAB_RETURN_IF_ERROR(CheckSent());
  Work();
  PIPELAB_RETURN_IF_ERROR(world_.FinishQueued(rank_));
  Advance(CollectivePhase::kFinished);
  PIPELAB_RETURN_IF_ERROR(Await(CollectivePhase::kFinished, limit));
  group_.Tidy();
  return absl::OkStatus();
}

absl::Status CollectiveCall::CheckSent() {
  if (collective_ != CollectiveOp::kAllToAll) return absl::OkStatus();
  const int64_t width = SizeOf(result_.type());
  for (int i = 0; i < group_.size(); ++i) {
    const int64_t sent = meeting_->members[i].to[me_];
    if (sent == from_[i]) continue;
    return world_.Fail(WrongPart(group_.ranks()[i], sent * width, from_[i] * width));
  }
  return absl::OkStatus();
}

void CollectiveCall::TakeParts() {
  const int64_t width = SizeOf(result_.type());
  char* place = static_cast<char*>(result_.data());
  for (int i = 0; i < group_.size(); ++i) {
    const Contribution& c = meeting_->members[i];
    const int64_t before = PartBegin(c.to, me_);
    CopyBytes(world_.device(rank_), static_cast<const char*>(c.tensor.data()) + before * width,
              place, from_[i] * width);
    place += from_[i] * width;
  }
}

// Each member sums (or compares) one chunk of everybody's and writes the result to everybody's: no
// scratch memory.
// Chunks are whole cache lines, so that no two members write to the same one.
void CollectiveCall::ReduceMyChunk() {
  const int64_t n = meeting_->members[me_].tensor.size(), lines = (n + 31) / 32;
  const int64_t begin = std::min(n, lines * me_ / group_.size() * 32);
  const int64_t end = std::min(n, lines * (me_ + 1) / group_.size() * 32);
  absl::InlinedVector<const void*, 8> inputs;
  absl::InlinedVector<void*, 8> outputs;
  for (const Contribution& c : meeting_->members) {
    inputs.push_back(c.tensor.data());
    outputs.push_back(c.tensor.data());
  }
  const auto reduction =
      collective_ == CollectiveOp::kAllReduceMax ? MemoryReduction::kMax : MemoryReduction::kSum;
  ReduceIn(world_.device(rank_), reduction, inputs, outputs, meeting_->members[me_].tensor.type(),
           begin, end - begin);
}

void CollectiveCall::Work() {
  const std::vector<Contribution>& members = meeting_->members;
  Memory* const device = world_.device(rank_);
  switch (collective_) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kAllReduceMax:
      if (group_.size() > 1) ReduceMyChunk();
      return;
    case CollectiveOp::kReduceScatter: {
      absl::InlinedVector<const void*, 8> inputs;
      for (const Contribution& c : members) {
        inputs.push_back(static_cast<const char*>(c.tensor.data()) + me_ * result_.bytes());
      }
      void* const output = result_.data();
      ReduceIn(device, MemoryReduction::kSum, inputs, absl::MakeConstSpan(&output, 1),
               result_.type(), 0, result_.size());
      return;
    }
    case CollectiveOp::kAllGather: {
      const int64_t bytes = members[me_].tensor.bytes();
      for (int i = 0; i < group_.size(); ++i) {
        CopyBytes(device, members[i].tensor.data(), static_cast<char*>(result_.data()) + i * bytes,
                  bytes);
      }
      return;
    }
    case CollectiveOp::kBroadcast:
      CopyBytes(device, members[root_].tensor.data(), result_.data(), result_.bytes());
      return;
    case CollectiveOp::kAllToAll:
      TakeParts();
      return;
    case CollectiveOp::kNone:
      return;
  }
}

}  // namespace pipelab
