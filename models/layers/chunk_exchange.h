// What an attention layer asks of the devices whose passes exchange attention with its own
// (SlimPipe's context exchange: pipelines/ir/slice_exchange.h says which).
//
//   for (const ChunkExchange::Share& share : ctx.exchange->given()) {
//     ctx.exchange->Send(queries_MW, share.peer);
//     outputs.push_back(
//         ctx.exchange->Receive(queries_MW.type(), queries_MW.shape(), share.peer, arena));
//   }
//
// The layers of a pass send and receive in one order at both ends. As with TensorPeers, the first
// error stays here, and whoever runs the layers asks for it when the pass is over.
#ifndef PIPELAB_MODELS_LAYERS_CHUNK_EXCHANGE_H_
#define PIPELAB_MODELS_LAYERS_CHUNK_EXCHANGE_H_

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

class ChunkExchange {
 public:
  // The giver's chunks [first, first + count) of keys and values, each as long as its slice. It
  // gives its earliest ones, share after share.
  struct Share {
    int peer = 0;  // at the other end
    int64_t first = 0, count = 0;
  };

  virtual ~ChunkExchange() = default;
  // The shares of the pass; one of them is empty.
  virtual absl::Span<const Share> given() const = 0;
  virtual absl::Span<const Share> received() const = 0;
  // Gives the tensor up.
  virtual void Send(Tensor tensor, int peer) = 0;
  // `arena` pays from now on. The result gives what has come when it is called, once.
  virtual std::function<Tensor()> Receive(DataType type, Shape shape, int peer, Arena* arena) = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_CHUNK_EXCHANGE_H_
