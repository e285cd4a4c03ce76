// What a layer asks of the devices that compute it together (models/graph/tensor_parallel.h), or
// that have other rows of its micro-batch (models/graph/batch_norm_copies.h): sums of partial
// results. The parts of a layer call these in one order on all devices, with tensors of
// equal size, and all devices get the same bits. Devices that divide experts exchange rows, as many
// as the tokens choose (expert_exchange.h).
//
//   b.Linear(mix_MW, wo, BiasOfOne(ctx, bo), branch_MC);   // a product divided by rows
//   SumOverPeers(ctx, branch_MC);                          // nothing, where the device is alone
//
// Layers have no way to report an error: the first one stays with the peers, who sum nothing
// afterwards, and whoever runs the layers asks for it when the pass is over.
#ifndef PIPELAB_MODELS_LAYERS_TENSOR_PEERS_H_
#define PIPELAB_MODELS_LAYERS_TENSOR_PEERS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "models/layers/layer.h"

namespace pipelab {

class TensorPeers {
 public:
  virtual ~TensorPeers() = default;
  virtual int member() const = 0;  // this device, from 0
  virtual int64_t size() const = 0;
  // In place: the sum over the devices in their order, and the largest.
  virtual void Sum(const Tensor& data) = 0;
  virtual void Largest(const Tensor& data) = 0;
  // For rows that are split by tokens: `own` has of each of `samples` samples this device's part of
  // the rows of `all`. Everybody's rows; and of the sums over the devices the own rows.
  virtual void GatherRows(const Tensor& own, const Tensor& all, int64_t samples) = 0;
  virtual void ScatterSums(const Tensor& all, const Tensor& own, int64_t samples) = 0;
  // `sent` goes to the device so many places on, round the ring of all of them, from now on; nobody
  // writes to it any more. What comes from the device so many places back, a tensor alike that
  // `arena` pays for from now on, is what the result gives when it is called, once.
  virtual std::function<Tensor()> Shift(Tensor sent, int64_t places, Arena* arena) = 0;
  // Communicator::AllToAll: numbers for each device, and from each.
  virtual void Exchange(const Tensor& data, absl::Span<const int64_t> to, const Tensor& result,
                        absl::Span<const int64_t> from) = 0;
  virtual absl::Status status() const = 0;
};

inline void SumOverPeers(const LayerContext& ctx, const Tensor& data) {
  if (ctx.peers != nullptr) ctx.peers->Sum(data);
}
// One of the devices that sum their partial results adds what belongs to the sum.
inline bool AddsToSum(const LayerContext& ctx) {
  return ctx.peers == nullptr || ctx.peers->member() == 0;
}
// All devices see all rows of the gradient of a bias after a sum. With sequence parallelism those
// of whole parameters are summed in the end: then one device counts.
inline Tensor BiasGradientOfOne(const LayerContext& ctx, RowPart rows, const Parameter& bias) {
  return rows.parts == 1 || AddsToSum(ctx) ? bias.gradient : Tensor();
}
inline Tensor BiasOfOne(const LayerContext& ctx, const Parameter& bias) {
  return AddsToSum(ctx) ? bias.value : Tensor();
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_TENSOR_PEERS_H_
