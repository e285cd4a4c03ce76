#include "kernels/comm/mpi_collective.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/time/clock.h"
#include "kernels/comm/sum.h"
#include "kernels/tensor/storage.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kLine = 64;  // bytes

// The same in every process (absl::Hash is not), and no two groups of a run have the same.
uint64_t HashOf(absl::Span<const int> group) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const int rank : group) {
    hash ^= static_cast<uint64_t>(rank) + 1;
    hash *= 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
  }
  return hash;
}

Tensor WithoutCharge(const Tensor& tensor) { return Tensor(tensor).Adopt(nullptr); }

char* BytesOf(const Tensor& tensor) { return static_cast<char*>(tensor.data()); }

void CopyHostBytes(const void* from, void* to, int64_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

MpiCollective::MpiCollective(MpiEngine* engine, int device, CollectiveOp op, int root,
                             absl::Span<const int> group, int64_t number, const Tensor& data,
                             const Tensor& result, absl::Span<const int64_t> to,
                             absl::Span<const int64_t> from)
    : engine_(engine),
      device_(device),
      claim_{op, root, data.type(), op == CollectiveOp::kAllToAll ? 0 : data.size()},
      group_(group.begin(), group.end()),
      me_(static_cast<int>(std::lower_bound(group.begin(), group.end(), device) - group.begin())),
      number_(number),
      hash_(HashOf(group)),
      data_(WithoutCharge(data)),
      result_(WithoutCharge(result)),
      to_(to.begin(), to.end()),
      from_(from.begin(), from.end()),
      in_(group.size()),
      out_(group.size()) {
  Start();
}

MpiCollective::Range MpiCollective::Chunk(int i) const {
  const int64_t bytes = data_.bytes(), lines = (bytes + kLine - 1) / kLine;
  return {std::min(bytes, lines * i / size() * kLine),
          std::min(bytes, lines * (i + 1) / size() * kLine)};
}

MpiCollective::Range MpiCollective::PartOf(const std::vector<int64_t>& parts, int i,
                                           DataType type) {
  const int64_t before = PartBegin(parts, i);
  return {before * SizeOf(type), (before + parts[i]) * SizeOf(type)};
}

void MpiCollective::SendTo(int member, int phase, const Tensor& from, Range range) {
  MpiHead head;
  head.from = device_;
  head.to = group_[member];
  head.tag = hash_;
  head.number = number_;
  head.phase = phase;
  head.op = static_cast<int32_t>(claim_.op);
  head.root = claim_.root;
  head.type = static_cast<int32_t>(claim_.type);
  head.size = claim_.size;
  out_[member] = engine_->Send(head, BytesOf(from) + range.begin, range.end - range.begin, from);
}

void MpiCollective::ReceiveFrom(int member, int phase, void* buffer, int64_t bytes, Tensor keep) {
  in_[member] = engine_->ReceiveOf(hash_, number_, phase, group_[member], device_, buffer, bytes,
                                   std::move(keep));
}

void MpiCollective::Start() {
  const bool all_reduce =
      claim_.op == CollectiveOp::kAllReduce || claim_.op == CollectiveOp::kAllReduceMax;
  const bool reduces = all_reduce || claim_.op == CollectiveOp::kReduceScatter;
  const int64_t part = data_.bytes() / size();
  const auto part_of = [&](int member) {
    return all_reduce ? Chunk(member) : Range{member * part, (member + 1) * part};
  };
  const Range own = part_of(me_);
  const int64_t own_bytes = own.end - own.begin;
  if (reduces && size() > 1) {
    scratch_ =
        Tensor(DataType::kInt32, {}, std::make_shared<Storage>(own_bytes * (size() - 1)), nullptr);
  }
  for (int k = 1; k < size(); ++k) {
    const int i = (me_ + k) % size();  // not everybody to the same one first
    if (reduces) {
      const int64_t place = i < me_ ? i : i - 1;
      ReceiveFrom(i, 0, BytesOf(scratch_) + place * own_bytes, own_bytes, scratch_);
      SendTo(i, 0, data_, part_of(i));
    } else if (claim_.op == CollectiveOp::kAllToAll) {
      const Range theirs = PartOf(from_, i, claim_.type);
      ReceiveFrom(i, 0, BytesOf(result_) + theirs.begin, theirs.end - theirs.begin, result_);
      SendTo(i, 0, data_, PartOf(to_, i, claim_.type));
    } else if (claim_.op == CollectiveOp::kAllGather) {
      ReceiveFrom(i, 0, BytesOf(result_) + i * data_.bytes(), data_.bytes(), result_);
      SendTo(i, 0, data_, {0, data_.bytes()});
    } else {
      const bool from_root = group_[i] == claim_.root, to_all = device_ == claim_.root;
      if (from_root || to_all) {
        ReceiveFrom(i, 0, result_.data(), from_root ? result_.bytes() : 0, result_);
        SendTo(i, 0, data_, {0, to_all ? data_.bytes() : 0});
      }
    }
  }
}

absl::Status MpiCollective::AwaitAll(absl::Time deadline, absl::Duration limit) {
  int missing = 0;
  const auto all_done = [&] {
    for (int i = 0; i < size(); ++i) {
      missing = i;
      if (in_[i] != nullptr && !in_[i]->done) return false;
      // A misfit of one ends it before the others' parts are taken.
      if (in_[i] != nullptr && in_[i]->misfit) return true;
    }
    for (int i = 0; i < size(); ++i) {
      missing = i;
      if (out_[i] != nullptr && !out_[i]->done) return false;
    }
    return true;
  };
  PIPELAB_RETURN_IF_ERROR(engine_->Await(device_, all_done, deadline - absl::Now(), [&] {
    return WaitedInCollective(device_, limit, group_[missing], claim_.op, group_);
  }));
  return CheckSame();
}

absl::Status MpiCollective::CheckSame() {
  for (int i = 0; i < size(); ++i) {
    if (in_[i] == nullptr || !in_[i]->has_head) continue;
    const MpiHead& head = in_[i]->head;
    const absl::StatusOr<CollectiveClaim> said = ClaimOf(head, head.from);
    if (!said.ok()) return engine_->Fail(device_, said.status());
    const CollectiveClaim& other = *said;
    if (claim_ == other && in_[i]->misfit) {
      return engine_->Fail(device_, WrongPart(head.from, head.bytes, in_[i]->bytes));
    }
    if (claim_ == other) continue;
    const bool first = i < me_;
    return engine_->Fail(device_,
                         Disagreement(group_, group_[std::min(i, me_)], first ? other : claim_,
                                      group_[std::max(i, me_)], first ? claim_ : other));
  }
  return absl::OkStatus();
}

// The sum (or the largest) of everybody's part, in group order.
void MpiCollective::Reduce(Range own, void* output) {
  const int64_t bytes = own.end - own.begin;
  absl::InlinedVector<const void*, 8> inputs;
  for (int i = 0; i < size(); ++i) {
    inputs.push_back(i == me_ ? BytesOf(data_) + own.begin
                              : BytesOf(scratch_) + (i < me_ ? i : i - 1) * bytes);
  }
  const auto reduce = claim_.op == CollectiveOp::kAllReduceMax ? &Largest : &SumInOrder;
  reduce(inputs, absl::MakeConstSpan(&output, 1), claim_.type, 0, bytes / SizeOf(claim_.type));
}

absl::Status MpiCollective::SpreadSums(absl::Time deadline, absl::Duration limit) {
  const Range own = Chunk(me_);
  for (int k = 1; k < size(); ++k) {
    const int i = (me_ + k) % size();
    const Range theirs = Chunk(i);
    ReceiveFrom(i, 1, BytesOf(data_) + theirs.begin, theirs.end - theirs.begin, data_);
    SendTo(i, 1, data_, own);
  }
  return AwaitAll(deadline, limit);
}

absl::Status MpiCollective::Finish(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  PIPELAB_RETURN_IF_ERROR(AwaitAll(deadline, limit));
  switch (claim_.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kAllReduceMax: {
      if (size() == 1) return absl::OkStatus();
      const Range own = Chunk(me_);
      Reduce(own, BytesOf(data_) + own.begin);
      return SpreadSums(deadline, limit);
    }
    case CollectiveOp::kReduceScatter: {
      const int64_t part = data_.bytes() / size();
      Reduce({me_ * part, (me_ + 1) * part}, result_.data());
      return absl::OkStatus();
    }
    case CollectiveOp::kAllGather:
      CopyHostBytes(data_.data(), BytesOf(result_) + me_ * data_.bytes(), data_.bytes());
      return absl::OkStatus();
    case CollectiveOp::kAllToAll: {
      const Range own = PartOf(to_, me_, claim_.type);
      CopyHostBytes(BytesOf(data_) + own.begin,
                    BytesOf(result_) + PartOf(from_, me_, claim_.type).begin, own.end - own.begin);
      return absl::OkStatus();
    }
    default:
      return absl::OkStatus();
  }
}

}  // namespace pipelab
