#include "models/layers/communicator_peers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/status/statusor.h"
#include "glog/logging.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "models/graph/collective.h"

namespace pipelab {

CommunicatorPeers::CommunicatorPeers(Communicator* communicator, std::vector<int> ranks,
                                     absl::Duration limit)
    : communicator_(communicator), ranks_(std::move(ranks)), limit_(limit) {
  const auto own = std::find(ranks_.begin(), ranks_.end(), communicator->rank());
  CHECK(own != ranks_.end()) << "rank " << communicator->rank() << " is not among its peers";
  member_ = static_cast<int>(own - ranks_.begin());
}

void CommunicatorPeers::AllReduce(const Tensor& data, ReduceOp op) {
  if (!status_.ok()) return;
  status_ = communicator_->AllReduce(data, ranks_, limit_, op);
  traffic_ += RingTraffic(Bytes(data.bytes()), size(), /*all_reduce=*/true);
}

template <typename Fn>
void CommunicatorPeers::ForEachSample(const Tensor& own, const Tensor& all, int64_t samples,
                                      Fn&& fn) {
  const int64_t few = own.dim(0) / samples, many = all.dim(0) / samples;
  for (int64_t s = 0; s < samples && status_.ok(); ++s) {
    const Tensor rows = all.Rows(s * many, (s + 1) * many);
    status_ = fn(own.Rows(s * few, (s + 1) * few), rows);
    traffic_ += RingTraffic(Bytes(rows.bytes()), size(), /*all_reduce=*/false);
  }
}

void CommunicatorPeers::GatherRows(const Tensor& own, const Tensor& all, int64_t samples) {
  ForEachSample(own, all, samples, [&](const Tensor& part, const Tensor& whole) {
    return communicator_->AllGather(part, whole, ranks_, limit_);
  });
}

void CommunicatorPeers::ScatterSums(const Tensor& all, const Tensor& own, int64_t samples) {
  ForEachSample(own, all, samples, [&](const Tensor& part, const Tensor& whole) {
    return communicator_->ReduceScatter(whole, part, ranks_, limit_);
  });
}

std::function<Tensor()> CommunicatorPeers::Shift(Tensor sent, int64_t places, Arena* arena) {
  const DataType type = sent.type();
  const Shape shape = sent.shape();
  const auto any = [=] { return arena->Allocate(type, shape, MemoryKind::kActivation); };
  if (!status_.ok()) return any;
  const auto at = [&](int64_t place) { return ranks_[(place % size() + size()) % size()]; };
  constexpr uint64_t kTag = 0x52494e47;
  const Bytes bytes(sent.bytes());
  const absl::StatusOr<Ticket> sending =
      communicator_->Send(std::move(sent), at(member_ + places), kTag);
  status_ = sending.status();
  if (!status_.ok()) return any;
  const absl::StatusOr<Ticket> receiving = communicator_->Receive(
      {type, shape}, at(member_ - places), kTag, arena->Reserve(bytes, MemoryKind::kActivation));
  status_ = receiving.status();
  if (!status_.ok()) return any;
  traffic_ += bytes;
  return [=, first = *receiving, second = *sending] {
    absl::StatusOr<Tensor> arrived = communicator_->Wait(first, limit_);
    if (arrived.ok() && status_.ok()) {
      status_ = communicator_->Wait(second, limit_).status();
    } else if (status_.ok()) {
      status_ = arrived.status();
    }
    return arrived.ok() ? *std::move(arrived) : any();
  };
}

void CommunicatorPeers::Exchange(const Tensor& data, absl::Span<const int64_t> to,
                                 const Tensor& result, absl::Span<const int64_t> from) {
  if (!status_.ok()) return;
  status_ = communicator_->AllToAll(data, to, result, from, ranks_, limit_);
  const int64_t all = std::accumulate(to.begin(), to.end(), int64_t{0});
  traffic_ += Bytes((all - to[member_]) * SizeOf(data.type()));
}

}  // namespace pipelab
