// The passes of a rank that exchange attention with those of other stages
// (pipelines/ir/slice_exchange.h), over a communicator of their own: messages of two ranks match in
// order, and those of the program are posted long before.
//
//   SliceExchanger exchanger(program, device, std::move(communicator), rank_of, limit);
//   ctx.exchange = exchanger.Of(action);                      // of each pass; null: it has none
//   ...  PIPELAB_RETURN_IF_ERROR(exchanger.status());         // when the pass is over
//
// Used by the rank's own thread, but for Abort. `traffic` is what it has sent so far.
#ifndef PIPELAB_PIPELINES_RUNTIME_SLICE_EXCHANGER_H_
#define PIPELAB_PIPELINES_RUNTIME_SLICE_EXCHANGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/communicator.h"
#include "models/layers/chunk_exchange.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

class SliceExchanger final : public ChunkExchange {
 public:
  // `rank_of`: of each device of the program, the rank that this one exchanges with. `limit`: of
  // each wait.
  SliceExchanger(const Program& program, int device, std::unique_ptr<Communicator> communicator,
                 const std::function<int(int device)>& rank_of, absl::Duration limit);

  // Begins a pass. Forwards and backwards exchange; recomputes and weight parts do not.
  ChunkExchange* Of(const Action& a);
  absl::Status status() const { return status_; }
  Bytes traffic() const { return traffic_; }
  // Frees who waits, here and elsewhere.
  void Abort(absl::Status why) { communicator_->Abort(std::move(why)); }

  absl::Span<const Share> given() const override { return pass_->given; }
  absl::Span<const Share> received() const override { return pass_->received; }
  void Send(Tensor tensor, int peer) override;
  std::function<Tensor()> Receive(DataType type, Shape shape, int peer, Arena* arena) override;

 private:
  using Key = std::tuple<int, int, int, bool>;  // stage, micro-batch, slice, backward
  struct Pass {
    int32_t slot = 0;
    std::vector<Share> given, received;
  };

  // The tag of the pass's next message with a peer, one way: both ends count alike.
  uint64_t TagOf(std::map<int, uint64_t>* counts, int peer) const;

  const std::unique_ptr<Communicator> communicator_;
  const absl::Duration limit_;
  std::map<Key, Pass> passes_;
  const Pass* pass_ = nullptr;                // under way
  std::map<int, uint64_t> sends_, receives_;  // [peer] of it
  absl::Status status_;
  Bytes traffic_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_SLICE_EXCHANGER_H_
