#include "kernels/cuda/nccl_collective.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

char* At(const Tensor& tensor, int64_t element) {
  return static_cast<char*>(tensor.data()) + element * SizeOf(tensor.type());
}

}  // namespace

NcclCollective::NcclCollective(NcclWorld* world, CollectiveOp op, int root,
                               absl::Span<const int> group, const Tensor& data,
                               const Tensor& result, absl::Span<const int64_t> to,
                               absl::Span<const int64_t> from)
    : world_(*world),
      claim_({op, root, data.type(), op == CollectiveOp::kAllToAll ? 0 : data.size()}),
      group_(group.begin(), group.end()),
      me_(static_cast<int>(std::find(group.begin(), group.end(), world->rank()) - group.begin())),
      data_(Tensor(data).Adopt(nullptr)),
      result_(Tensor(result).Adopt(nullptr)),
      to_(to.begin(), to.end()),
      from_(from.begin(), from.end()) {}

absl::Status NcclCollective::Finish(absl::Duration limit) {
  PIPELAB_RETURN_IF_ERROR(ShowClaims());
  PIPELAB_RETURN_IF_ERROR(AwaitExchange(limit));
  PIPELAB_RETURN_IF_ERROR(CheckClaims());
  switch (claim_.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kAllReduceMax:
      PIPELAB_RETURN_IF_ERROR(AllReduce(limit));
      break;
    case CollectiveOp::kReduceScatter:
      PIPELAB_RETURN_IF_ERROR(ReduceScatter(limit));
      break;
    case CollectiveOp::kAllGather:
      PIPELAB_RETURN_IF_ERROR(AllGather(limit));
      break;
    case CollectiveOp::kBroadcast:
      PIPELAB_RETURN_IF_ERROR(Broadcast(limit));
      break;
    case CollectiveOp::kAllToAll:
      PIPELAB_RETURN_IF_ERROR(AllToAll(limit));
      break;
    case CollectiveOp::kNone:
      break;
  }
  return world_.device()->Finish();
}

absl::Status NcclCollective::ShowClaims() {
  WireHead head;
  head.op = static_cast<int32_t>(claim_.op);
  head.root = claim_.root;
  head.type = static_cast<int32_t>(claim_.type);
  head.size = claim_.size;
  members_.resize(group_.size());
  for (size_t i = 0; i < group_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    Member& member = members_[i];
    member.heads = std::make_unique<NcclBytes>(world_.device().get(), 2 * sizeof(WireHead));
    if (member.heads->data() == nullptr) return world_.device()->Finish();
    if (!to_.empty()) {
      head.size = to_[i];
      PIPELAB_RETURN_IF_ERROR(world_.device()->Finish());  // the head before has been copied
    }
    world_.device()->FromHost(&head, member.heads->data(), sizeof(head));
  }
  PIPELAB_RETURN_IF_ERROR(world_.device()->Finish());  // the data's values, too
  return Exchange([&](int i) {
    char* const heads = members_[i].heads->data();
    return Transfer{heads, sizeof(WireHead), heads + sizeof(WireHead), sizeof(WireHead)};
  });
}

absl::Status NcclCollective::Exchange(const std::function<Transfer(int)>& bytes) {
  for (size_t i = 0; i < group_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    const Transfer b = bytes(static_cast<int>(i));
    PIPELAB_ASSIGN_OR_RETURN(
        members_[i].event, world_.beside(group_[i]).Exchange(b.out, b.out_bytes, b.in, b.in_bytes));
  }
  return absl::OkStatus();
}

absl::Status NcclCollective::AwaitExchange(absl::Duration limit) {
  for (size_t i = 0; i < group_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    PIPELAB_RETURN_IF_ERROR(world_.Await(
        [&] { return members_[i].event->Ready(); }, limit,
        [&] { return WaitedInCollective(world_.rank(), limit, group_[i], claim_.op, group_); }));
  }
  return absl::OkStatus();
}

absl::Status NcclCollective::CheckClaims() {
  for (size_t i = 0; i < group_.size(); ++i) {
    if (static_cast<int>(i) == me_) continue;
    WireHead head;
    world_.device()->ToHost(members_[i].heads->data() + sizeof(WireHead), &head, sizeof(head));
    PIPELAB_RETURN_IF_ERROR(world_.device()->Finish());
    PIPELAB_ASSIGN_OR_RETURN(CollectiveClaim claim, ClaimOf(head, group_[i]));
    const bool exchange = claim.op == CollectiveOp::kAllToAll;
    const int64_t sent = exchange ? std::exchange(claim.size, 0) : 0;
    if (claim == claim_ && exchange && sent != from_[i]) {
      const int64_t width = SizeOf(claim_.type);
      return WrongPart(group_[i], sent * width, from_[i] * width);
    }
    if (claim == claim_) continue;
    const bool lower = static_cast<int>(i) < me_;
    return Disagreement(group_, lower ? group_[i] : world_.rank(), lower ? claim : claim_,
                        lower ? world_.rank() : group_[i], lower ? claim_ : claim);
  }
  return absl::OkStatus();
}

std::pair<int64_t, int64_t> NcclCollective::ChunkOf(int i) const {
  const int64_t n = data_.size(), members = static_cast<int64_t>(group_.size());
  const int64_t lines = (n + 31) / 32;
  return {std::min(n, lines * i / members * 32), std::min(n, lines * (i + 1) / members * 32)};
}

absl::Status NcclCollective::Gathered(absl::Duration limit,
                                      const std::function<std::pair<int64_t, int64_t>(int)>& part,
                                      void* output) {
  const auto [begin, end] = part(me_);
  const int64_t width = SizeOf(data_.type()), own = (end - begin) * width;
  const int64_t members = static_cast<int64_t>(group_.size());
  const NcclBytes scratch(world_.device().get(), own * members);
  PIPELAB_RETURN_IF_ERROR(world_.device()->Finish());
  PIPELAB_RETURN_IF_ERROR(Exchange([&](int i) {
    const auto [theirs, last] = part(i);
    return Transfer{At(data_, theirs), (last - theirs) * width, scratch.data() + i * own, own};
  }));
  PIPELAB_RETURN_IF_ERROR(AwaitExchange(limit));
  if (own == 0) return absl::OkStatus();
  std::vector<const void*> inputs;
  for (int i = 0; i < members; ++i) {
    inputs.push_back(i == me_ ? At(data_, begin) : scratch.data() + i * own);
  }
  const auto reduction =
      claim_.op == CollectiveOp::kAllReduceMax ? MemoryReduction::kMax : MemoryReduction::kSum;
  world_.device()->Reduce(reduction, inputs, absl::MakeConstSpan(&output, 1), data_.type(), 0,
                          end - begin);
  return world_.device()->Finish();
}

absl::Status NcclCollective::AllReduce(absl::Duration limit) {
  const auto chunk = [&](int i) { return ChunkOf(i); };
  const int64_t width = SizeOf(data_.type());
  const auto [begin, end] = chunk(me_);
  PIPELAB_RETURN_IF_ERROR(Gathered(limit, chunk, At(data_, begin)));
  PIPELAB_RETURN_IF_ERROR(Exchange([&, begin = begin, end = end](int i) {
    const auto [theirs, last] = chunk(i);
    return Transfer{At(data_, begin), (end - begin) * width, At(data_, theirs),
                    (last - theirs) * width};
  }));
  return AwaitExchange(limit);
}

absl::Status NcclCollective::ReduceScatter(absl::Duration limit) {
  const int64_t size = result_.size();
  const auto part = [size](int i) { return std::make_pair(i * size, (i + 1) * size); };
  return Gathered(limit, part, result_.data());
}

absl::Status NcclCollective::AllGather(absl::Duration limit) {
  const int64_t size = data_.size(), bytes = data_.bytes();
  PIPELAB_RETURN_IF_ERROR(Exchange([&](int i) {
    return Transfer{data_.data(), bytes, At(result_, i * size), bytes};
  }));
  char* const own = At(result_, me_ * size);
  if (bytes > 0 && own != data_.data()) world_.device()->Copy(data_.data(), own, bytes);
  return AwaitExchange(limit);
}

absl::Status NcclCollective::AllToAll(absl::Duration limit) {
  const int64_t width = SizeOf(data_.type());
  const auto at = [](const Tensor& tensor, const std::vector<int64_t>& parts, int i) {
    return At(tensor, PartBegin(parts, i));
  };
  PIPELAB_RETURN_IF_ERROR(Exchange([&](int i) {
    return Transfer{at(data_, to_, i), to_[i] * width, at(result_, from_, i), from_[i] * width};
  }));
  if (to_[me_] > 0) {
    world_.device()->Copy(at(data_, to_, me_), at(result_, from_, me_), to_[me_] * width);
  }
  return AwaitExchange(limit);
}

absl::Status NcclCollective::Broadcast(absl::Duration limit) {
  const bool root = claim_.root == world_.rank();
  PIPELAB_RETURN_IF_ERROR(Exchange([&](int i) {
    const bool from_them = group_[i] == claim_.root;
    return Transfer{data_.data(), root ? data_.bytes() : 0, data_.data(),
                    from_them ? data_.bytes() : 0};
  }));
  return AwaitExchange(limit);
}

}  // namespace pipelab
