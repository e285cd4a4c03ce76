#include "models/layers/communicator_peers.h"

#include <algorithm>
#include <cstdint>
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
  traffic_ += RingTraffic(Bytes(data.bytes()), static_cast<int64_t>(ranks_.size()),
                          /*all_reduce=*/true);
}

}  // namespace pipelab
