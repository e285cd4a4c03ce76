#include "models/layers/communicator_peers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "glog/logging.h"
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

void CommunicatorPeers::Exchange(const Tensor& data, absl::Span<const int64_t> to,
                                 const Tensor& result, absl::Span<const int64_t> from) {
  if (!status_.ok()) return;
  status_ = communicator_->AllToAll(data, to, result, from, ranks_, limit_);
  const int64_t all = std::accumulate(to.begin(), to.end(), int64_t{0});
  traffic_ += Bytes((all - to[member_]) * SizeOf(data.type()));
}

}  // namespace pipelab
