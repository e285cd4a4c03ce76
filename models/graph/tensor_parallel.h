// A layer that a group of T devices computes together, each with a part of its parameters:
// tensor parallelism as in Megatron-LM.
//
//   TensorParallel split{/*degree=*/8};
//   TensorShare s = ShareOf(layer, /*samples=*/4, TokenSlice(), split);   // layer_spec.h: one
//   device's s.costs.kept; s.operations.forward; s.forward;       // the last: what the group sends
//
// Attention is split by heads, a feed-forward layer by its inner width, embedding and head by
// words. A first product divides its weights by columns and needs nothing of the others, a second
// one divides its by rows, and the group sums the partial results: one sum forward, after the
// second product, and one backward, of the first one's input gradient. Norms, dropout, residual
// sums and the tensors between layers are whole on every device, and each does the same with them.
//
// With `sequence` these are split by tokens: each device has the rows of 1/T of each sample's
// tokens. A sum is then a reduce-scatter, and before a first product (and backward before a second
// one's) the rows are gathered: the bytes of the all-reduce that they take the place of. The weight
// gradient of a first product gathers its input once more, so that no device keeps it whole.
//
// With `context` C devices divide each sample's tokens as well (context_part.h): all have the same
// weights, or the same part of them, and every layer works on its device's rows. Attention alone
// needs the others': their keys and values are gathered forward, and again backward, whose
// gradients are reduce-scattered, or all of these travel round a ring, or heads are exchanged for
// tokens (ContextExchange; LayerSplit::context_collectives).
//
// With `experts` E devices divide the routed experts of a layer: each token's rows go to the
// devices that have its experts, and come back, by one all-to-all each, forward and backward. They
// are E of the devices with other tokens, in groups of T that have a part of each expert; or, with
// `whole_experts`, E of all devices, the T of a group too, whose rows are then split by tokens,
// each with whole experts. Everything else is as without. With `once_per_node` a token's row goes
// once to each node, and there once to each device, that has experts of it (DeepSeek-AI,
// "DeepSeek-V3 technical report", 2024, section 3.2.2): bytes stay those of all chosen rows, and
// the path says what they cost (ExchangePath in pipelines/cluster/rank_network.h).
//
// Papers: Lepikhin et al., "GShard", ICLR 2021, for experts; Shoeybi et al., "Megatron-LM", 2019;
// Narayanan et al., SC 2021; Korthikanti et al., "Reducing activation recomputation in large
// Transformer models", 2022; Dubey et al., "The Llama 3 Herd of Models", 2024.
#ifndef PIPELAB_MODELS_GRAPH_TENSOR_PARALLEL_H_
#define PIPELAB_MODELS_GRAPH_TENSOR_PARALLEL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/graph/collective.h"
#include "models/graph/context_part.h"
#include "models/graph/layer_costs.h"
#include "models/graph/operation.h"
#include "models/graph/token_slice.h"
#include "tools/base/units.h"

namespace pipelab {

struct TensorParallel {
  int64_t degree = 1;     // T, devices of the group
  bool sequence = false;  // sequence parallelism
  int64_t context = 1;    // C, devices with parts of each sample's tokens
  int64_t experts = 1;    // E, devices that divide a layer's experts
  bool whole_experts = false;
  ContextExchange exchange = ContextExchange::kGather;
  bool once_per_node = false;

  // Whether a device has less than the whole layer.
  bool divides() const { return degree > 1 || context > 1 || experts > 1; }
  bool scatters_rows() const { return sequence && degree > 1; }
  // Devices that have parts of one expert; and of the copies of a stage, those that follow one
  // another and have different experts.
  int64_t expert_degree() const { return whole_experts ? 1 : degree; }
  int64_t expert_copies() const { return whole_experts ? experts / degree : experts; }
  // Which share of the experts rank t of a group has, of the copies of a stage the one of this
  // number.
  int64_t ShareOfExperts(int64_t copy, int64_t t) const {
    return whole_experts ? copy % expert_copies() * degree + t : copy % experts;
  }
};

// A size that the degree must divide: 32 "heads".
struct TensorDimension {
  std::string name;
  int64_t size = 0;
  bool sequence = false;       // only with sequence parallelism
  std::string attribute = {};  // of the layer, that has it; empty: none
};

// Bytes of the whole tensor: before a reduce-scatter, after an all-gather. What a device has for
// all devices, itself too, before an all-to-all, which is among those that divide experts, or those
// with the other tokens. What a device sends in a hop, which runs beside so large a part of the
// pass's attention.
struct TensorCollective {
  Collective kind;
  Bytes bytes;
  double beside = 0;
};

// What the group does in each pass, one after the other; a recompute does the forward's again.
struct TensorCollectives {
  std::vector<TensorCollective> forward, backward_input, backward_weight;
};

// One device's part of a layer.
struct TensorShare : TensorCollectives {
  LayerCosts costs;
  LayerOperations operations;
  TensorCollectives context;  // among the devices with the other tokens, or with other slices
};

// Which devices can compute a layer that have a part of each sample's tokens: none; those that have
// its rows, each of which is by itself; those that get the keys and values of all tokens.
enum class ContextUse : uint8_t { kNone, kRows, kKeys, kCausalKeys };

// How a layer is split: its part on one device, for whole samples or a slice of their tokens.
struct LayerSplit {
  template <typename T>
  using Of = std::function<T(int64_t samples, TokenSlice slice, TensorParallel split)>;

  Of<LayerCosts> costs;
  Of<LayerOperations> operations;
  Of<TensorCollectives> collectives;
  std::vector<TensorDimension> dimensions;
  ContextUse context = ContextUse::kNone;
  // Also what a pass of a slice exchanges with those of others (TokenSlice::exchanges). Null: none.
  Of<TensorCollectives> context_collectives = nullptr;
  // In place of all that: every device computes the layer whole and needs nothing of the others. A
  // model says so of cheap layers; silence is a refusal (CheckTensorParallel).
  bool whole = false;

  bool empty() const { return !costs; }
};

// Rows (tokens of all samples) of a layer's products, and of what is outside them on one device;
// with context parallelism of its part of them.
struct SplitRows {
  int64_t all = 0, own = 0;

  SplitRows(int64_t rows, TensorParallel split)
      : all(rows / split.context), own(split.scatters_rows() ? all / split.degree : all) {}
  bool scattered() const { return own != all; }
};

// Partial results of the devices become their sum. `bytes` are of all rows.
void AddSum(TensorParallel split, Bytes bytes, std::vector<TensorCollective>* collectives);
// Where rows are split by tokens, every device gets all.
void AddGather(TensorParallel split, Bytes bytes, std::vector<TensorCollective>* collectives);
// The collectives of the usual branch, from norm to residual sum: a first product and a second one.
TensorCollectives BranchCollectives(TensorParallel split, Bytes bytes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_TENSOR_PARALLEL_H_
