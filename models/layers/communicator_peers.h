// A tensor-parallel group, or a group of copies, over a communicator: the device's peers are ranks
// of it.
//
//   CommunicatorPeers peers(communicator, /*ranks=*/{4, 5}, /*limit=*/absl::Seconds(60));
//   ctx.peers = &peers;  ...  PIPELAB_RETURN_IF_ERROR(peers.status());
//
// Used by the communicator's own thread. `traffic` is what this device has sent so far: by rings,
// and in exchanges what goes to others.
#ifndef PIPELAB_MODELS_LAYERS_COMMUNICATOR_PEERS_H_
#define PIPELAB_MODELS_LAYERS_COMMUNICATOR_PEERS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/communicator.h"
#include "models/layers/tensor_peers.h"
#include "tools/base/units.h"

namespace pipelab {

class CommunicatorPeers final : public TensorPeers {
 public:
  // `ranks`: the group, ascending; the communicator's own rank is one of them (CHECKed).
  CommunicatorPeers(Communicator* communicator, std::vector<int> ranks, absl::Duration limit);

  int member() const override { return member_; }
  int64_t size() const override { return static_cast<int64_t>(ranks_.size()); }
  void Sum(const Tensor& data) override { AllReduce(data, ReduceOp::kSum); }
  void Largest(const Tensor& data) override { AllReduce(data, ReduceOp::kMax); }
  void GatherRows(const Tensor& own, const Tensor& all, int64_t samples) override;
  void ScatterSums(const Tensor& all, const Tensor& own, int64_t samples) override;
  std::function<Tensor()> Shift(Tensor sent, int64_t places, Arena* arena) override;
  void Exchange(const Tensor& data, absl::Span<const int64_t> to, const Tensor& result,
                absl::Span<const int64_t> from) override;
  absl::Status status() const override { return status_; }
  Bytes traffic() const { return traffic_; }

 private:
  void AllReduce(const Tensor& data, ReduceOp op);
  // Calls fn(own rows, all rows) sample by sample, whose rows follow one another in both.
  template <typename Fn>
  void ForEachSample(const Tensor& own, const Tensor& all, int64_t samples, Fn&& fn);

  Communicator* const communicator_;
  const std::vector<int> ranks_;
  const absl::Duration limit_;
  int member_ = -1;
  absl::Status status_;
  Bytes traffic_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_COMMUNICATOR_PEERS_H_
