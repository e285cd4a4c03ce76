// Split parallelism of a graph network's layers: rows of vertices on their way from owners to the
// members whose blocks need them, and gradients back (GSplit, arXiv 2303.13775, section 4).
//
//   CommunicatorPeers group(communicator, {0, 1}, limit);
//   PIPELAB_ASSIGN_OR_RETURN(const SplitSample sample,
//                            SampleWithPeers(step, batch, &member, &group, &arena));
//   GraphPeers peers(ShufflesOf(sample), &group, backend);
//   Tensor x_SC = peers.Go(/*block=*/0, own_RC);            // before the layer
//   Tensor down_RC = peers.Return(0, dx_SC);                // behind its input gradient
//
// R own rows, of a block's targets on the layer before or of the sample's inputs; S sources. A
// layer between them is the one of a single device: a vertex is computed from the same rows in the
// same order. Return adds to a vertex's own gradient those of the other members in their order, so
// results are the same in every run; they round otherwise than one device's sum over all edges.
//
// All members call all of this in one order. An error stays with the group (tensor_peers.h); then
// no rows come.
#ifndef PIPELAB_MODELS_LAYERS_GRAPH_PEERS_H_
#define PIPELAB_MODELS_LAYERS_GRAPH_PEERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "kernels/tensor/tensor.h"
#include "models/data/split_sampler.h"
#include "models/layers/tensor_peers.h"
#include "tools/base/units.h"

namespace pipelab {

std::vector<RowShuffle> ShufflesOf(const SplitSample& sample);  // [block]

class GraphPeers {
 public:
  // `group` and `backend` outlive it.
  GraphPeers(const std::vector<RowShuffle>& shuffles, TensorPeers* group, Backend* backend);

  Tensor Go(int block, const Tensor& own_RC) const;
  Tensor Return(int block, const Tensor& dx_SC) const;
  absl::Status status() const { return group_->status(); }

 private:
  struct Shuffle {
    int64_t own = 0;
    std::vector<int64_t> to, from;
    Tensor sent_N;         // own rows that go out, by member
    GraphIndex additions;  // from own gradients and what comes back to own rows
  };

  void Exchange(const Tensor& rows, const std::vector<int64_t>& to, const Tensor& came,
                const std::vector<int64_t>& from) const;

  TensorPeers* const group_;
  Backend* const backend_;
  std::vector<Shuffle> shuffles_;
};

// The bytes that a member sends to others for a block of float32 rows `columns` wide: Go's, and
// Return's; and for a sample's ids with their counts.
Bytes GoBytes(const RowShuffle& shuffle, int64_t columns);
Bytes ReturnBytes(const RowShuffle& shuffle, int64_t columns);
Bytes SampleBytes(const SplitSample& sample, int64_t members);

// Draws with the other members, who do the same: two exchanges a hop, of counts and of ids.
absl::StatusOr<SplitSample> SampleWithPeers(int64_t step, absl::Span<const int32_t> batch,
                                            SplitMember* member, TensorPeers* group, Arena* arena);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GRAPH_PEERS_H_
