#include "models/specs/slice_attention_spec.h"

#include <algorithm>
#include <numeric>

#include "models/graph/attention_workspace.h"
#include "models/graph/cost_math.h"
#include "models/specs/gpt_attention_spec.h"

namespace pipelab {
namespace {

// What messages are made of.
struct Parts {
  Bytes queries;  // of the slice: also an output, or a gradient of either
  Bytes sums;     // log-sum-exps
  Bytes chunk;    // keys and values

  explicit Parts(const SliceAttention& a)
      : queries(a.width(a.samples * a.slice.count * a.query)),
        sums(FloatBytes(a.samples * a.slice.count * a.heads)),
        chunk(a.width(a.samples * a.slice.count * a.keys)) {}
  // Queries, the output and its gradient.
  Bytes Backward(int64_t chunks) const { return queries * 3 + sums + chunk * chunks; }
};

Bytes Scratch(const SliceAttention& a, int64_t keys) {
  return FloatBytes(AttentionWorkspaceFloats(a.slice.count, keys, a.window, a.key_tile));
}

// Receives are posted for all, and then own attention comes; what is sent is there one tensor at a
// time.
SliceAttentionMemory MemoryOfGiver(const SliceAttention& a) {
  const Parts p(a);
  const int64_t n = a.slice.count;
  SliceAttentionMemory most;
  Bytes outputs, gradients;
  for (const int64_t chunks : a.slice.given) {
    outputs += p.queries + p.sums;
    gradients += p.queries + p.chunk * chunks;
    most.forward = std::max(most.forward, std::max(p.queries, p.chunk * chunks));
  }
  most.backward = std::max(most.forward, p.sums);
  most.forward = std::max(most.forward, outputs + Scratch(a, a.KeptTokens()));
  most.backward = std::max(most.backward, gradients + Scratch(a, a.KeptTokens()) * 2);
  for (const int64_t chunks : a.slice.given) {  // added sample by sample
    most.backward_end = std::max(most.backward_end, gradients + a.width(n * a.query));
    gradients -= p.queries;
    most.backward_end = std::max(most.backward_end, gradients + a.width(chunks * n * a.keys));
    gradients -= p.chunk * chunks;
  }
  return most;
}

SliceAttentionMemory MemoryOfHelper(const SliceAttention& a) {
  const Parts p(a);
  const int64_t n = a.slice.count;
  Bytes queries, gradients;
  for (const int64_t chunks : a.slice.received) {
    queries += p.queries + p.chunk * chunks;
    gradients += p.Backward(chunks);
  }
  SliceAttentionMemory most;
  most.forward = queries + Scratch(a, a.slice.end());
  most.backward = gradients + Scratch(a, a.slice.end()) * 2;
  for (const int64_t chunks : a.slice.received) {
    const Bytes scratch = Scratch(a, chunks * n);
    most.forward = std::max(most.forward, queries + p.queries + p.sums + scratch);
    most.backward_end =
        std::max(most.backward_end, gradients + p.queries + p.chunk * chunks + scratch * 2);
    queries -= p.queries + p.chunk * chunks;
    gradients -= p.Backward(chunks);
  }
  return most;
}

}  // namespace

int64_t SliceAttention::GivenTokens() const {
  return slice.count * std::accumulate(slice.given.begin(), slice.given.end(), int64_t{0});
}

int64_t SliceAttention::Pairs() const {
  const int64_t own = CausalAttentionPairs(slice.first - GivenTokens(), slice.count, window);
  const int64_t chunks = std::accumulate(slice.received.begin(), slice.received.end(), int64_t{0});
  return own + chunks * slice.count * slice.count;
}

int64_t SliceAttention::KeysRead() const {
  const int64_t chunks = std::accumulate(slice.received.begin(), slice.received.end(), int64_t{0});
  const int64_t own = KeptTokens();
  const int64_t most = window == 0 ? own : slice.count + window - 1;
  return std::min(own, most) + chunks * slice.count;
}

SliceAttentionMemory SliceAttention::Memory() const {
  return slice.given.empty() ? MemoryOfHelper(*this) : MemoryOfGiver(*this);
}

TensorCollectives SliceAttention::Messages() const {
  const Parts p(*this);
  TensorCollectives hops;
  const double beside = 1.0 / static_cast<double>(slice.given.size() + slice.received.size());
  const auto add = [&](Bytes forward, Bytes backward) {
    hops.forward.push_back({Collective::kHop, forward, beside});
    hops.backward_input.push_back({Collective::kHop, backward, beside});
  };
  for (const int64_t chunks : slice.given) {
    add(p.queries + p.chunk * chunks, p.Backward(chunks));
  }
  for (const int64_t chunks : slice.received) {
    add(p.queries + p.sums, p.queries + p.chunk * chunks);
  }
  return hops;
}

void SliceAttention::AddOperations(LayerOperations* ops) const {
  const int64_t row = samples * slice.count;
  for (const int64_t chunks : slice.given) {
    // Weights of a merge are exponentials.
    ops->forward.push_back(MemoryOperation(OperationKind::kGelu, 3 * row * query));
    ops->forward.push_back(
        OwnOperation(OperationKind::kElementwise, 2 * row * (query + chunks * keys)));
    // Out; and gradients out of their rows, added, and in again.
    ops->backward_input.push_back(
        OwnOperation(OperationKind::kElementwise,
                     2 * row * (3 * query + chunks * keys) + 7 * row * (query + chunks * keys)));
  }
}

}  // namespace pipelab
