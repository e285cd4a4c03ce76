#include "models/specs/context_attention_spec.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "models/graph/attention_workspace.h"
#include "models/graph/context_ring.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/own_operations.h"

namespace pipelab {
namespace {

// Calls fn(queries, their first one's place from the chunk of keys on) for device `part`'s calls of
// one sample in a step. Without a causal mask all see all.
template <typename Fn>
void ForEachCall(const ContextAttention& a, int64_t part, int64_t shift, Fn&& fn) {
  const int64_t parts = a.split.context, h = a.chunk();
  if (!a.causal) return fn(h, h);
  const int64_t from = (part - shift + parts) % parts;
  for (const int64_t queries : {part, 2 * parts - 1 - part}) {
    for (const int64_t keys : {from, 2 * parts - 1 - from}) {
      const int64_t seeing = SeeingQueries(queries, keys, h, a.window);
      if (seeing > 0) fn(seeing, (queries - keys) * h);
    }
  }
}

// All devices do the same in a step, but where windows end.
int64_t DevicesThatDiffer(const ContextAttention& a) { return a.window > 0 ? a.split.context : 1; }

// Pairs of queries that are so far from the first key of a chunk.
int64_t PairsOfCall(const ContextAttention& a, int64_t queries, int64_t first) {
  const int64_t h = a.chunk();
  if (first == 0) return CausalAttentionPairs(0, queries, a.window);
  if (a.window == 0) return queries * h;
  int64_t pairs = 0;
  for (int64_t row = 0; row < queries; row += kAttentionQueryRows) {
    const int64_t rows = std::min(kAttentionQueryRows, queries - row);
    pairs += rows * (h - std::max<int64_t>(0, first + row + 1 - a.window));
  }
  return pairs;
}

// [step] On the device that has most in it.
std::vector<int64_t> PairsOfSteps(const ContextAttention& a,
                                  const std::vector<ContextStep>& steps) {
  std::vector<int64_t> all;
  for (const ContextStep& step : steps) {
    int64_t most = 0;
    for (int64_t part = 0; part < DevicesThatDiffer(a); ++part) {
      int64_t pairs = 0;
      ForEachCall(a, part, step.shift,
                  [&](int64_t queries, int64_t first) { pairs += PairsOfCall(a, queries, first); });
      most = std::max(most, pairs);
    }
    all.push_back(most);
  }
  return all;
}

struct Ring {
  std::vector<ContextStep> steps;
  std::vector<int64_t> pairs;  // [step]
};

// Its steps are as many as devices, and each layer asks for them several times: they are worked out
// once. Holds until the thread's next call.
const Ring& RingOf(const ContextAttention& a) {
  constexpr size_t kMostRings = 1024;
  thread_local std::map<std::tuple<int64_t, int64_t, int64_t, bool>, Ring> rings;
  if (rings.size() > kMostRings) rings.clear();
  const auto [at, added] =
      rings.try_emplace({int64_t{a.split.context}, a.chunk(), a.window, a.causal});
  Ring& ring = at->second;
  if (added) {
    ring.steps = RingSteps({a.split.context, 0, a.causal}, a.chunk(), a.window);
    ring.pairs = PairsOfSteps(a, ring.steps);
  }
  return ring;
}

// Chunks i and 2C - 1 - i begin after 2C - 1 chunks together, whichever they are: without a window
// all devices have as many pairs, with one the first device has fewest.
int64_t PairsOfGathered(const ContextAttention& a) {
  const int64_t h = a.chunk(), parts = a.split.context;
  if (!a.causal) return h * a.tokens;
  int64_t most = 0;
  for (int64_t i = 0; i < parts; ++i) {
    most = std::max(most, CausalAttentionPairs(i * h, h, a.window) +
                              CausalAttentionPairs((2 * parts - 1 - i) * h, h, a.window));
  }
  return most;
}

ContextMemory MemoryOfRing(const ContextAttention& a) {
  const int64_t h = a.chunk();
  const Bytes own = a.OwnKeys();
  ContextMemory most;
  if (!a.apart) most.gathers = own;
  for (const ContextStep& step : RingOf(a).steps) {
    // What is apart stays beside what comes.
    const Bytes forward = own * (step.keys + (a.apart && step.shift != 0 ? 1 : 0));
    const Bytes backward = own * (step.keys + step.gradients);
    most.forward = std::max(most.forward, forward);
    most.backward = std::max(most.backward, backward);
    for (int64_t part = 0; part < DevicesThatDiffer(a); ++part) {
      ForEachCall(a, part, step.shift, [&](int64_t queries, int64_t first) {
        const Bytes sums = FloatBytes(queries * a.heads);
        const bool merged = step.shift != 0 || (a.causal && first > 0);
        const int64_t scores = AttentionWorkspaceFloats(queries, h, a.window, a.key_tile);
        most.forward =
            std::max(most.forward, forward + FloatBytes(scores) +
                                       (merged ? a.width(queries * a.out_row) + sums : Bytes(0)));
        most.backward = std::max(
            most.backward, backward + FloatBytes(2 * scores) + (queries < h ? sums : Bytes(0)));
      });
    }
  }
  return most;
}

int64_t SumOf(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

TensorCollectives HopsOf(const ContextAttention& a) {
  const auto& [steps, pairs] = RingOf(a);
  const auto all = static_cast<double>(SumOf(pairs));
  TensorCollectives hops;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double beside = static_cast<double>(pairs[i]) / all;
    for (const auto& [count, pass] : {std::make_pair(steps[i].forward_hops, &hops.forward),
                                      {steps[i].backward_hops, &hops.backward_input}}) {
      if (count > 0) pass->push_back({Collective::kHop, a.OwnKeys() * count, beside});
    }
  }
  if (steps.size() > 1) hops.backward_input.push_back({Collective::kHop, a.OwnKeys()});
  return hops;
}

}  // namespace

int64_t ContextAttention::Pairs() const {
  if (ring()) {
    return SumOf(RingOf(*this).pairs);
  }
  if (parts() && !by_heads()) return PairsOfGathered(*this);
  return causal ? CausalAttentionPairs(0, tokens, window) : tokens * tokens;
}

Flops ContextAttention::PairFlops(int64_t columns) const {
  return MatmulFlops(samples, Pairs(), columns / head_parts());
}

int64_t ContextAttention::KeysRead() const {
  if (by_heads()) return tokens / split.context;  // all of them, of that part of the heads
  const int64_t all = causal ? (2 * split.context + 1) * chunk() : tokens;
  return window == 0 ? all : std::min(all, 2 * (chunk() + window - 1));
}

ContextMemory ContextAttention::Memory() const {
  if (ring()) return MemoryOfRing(*this);
  const Bytes scores = FloatBytes(AttentionWorkspaceFloats(chunk(), tokens, window, key_tile));
  ContextMemory most;
  most.forward = scores;
  most.backward = scores * 2;
  if (by_heads()) {
    // What is exchanged is there twice, keys that are apart beside the queries. Backward that is
    // less than the gradients that the attention has.
    const int64_t own = samples * tokens / split.context;
    most.gathers = width(own * (apart ? std::max(q_row, row) : q_row + row));
    most.kept = width(own * out_row);
    most.forward = std::max(scores, most.kept * 2);
  } else if (parts()) {
    // The keys and values of all tokens, and once more while they are put in order; backward, these
    // and their gradient.
    most.gathers = AllKeys() * 2;
    most.forward += AllKeys();
    most.backward += AllKeys() * 2;
  }
  return most;
}

TensorCollectives ContextAttention::Collectives() const {
  if (ring()) return HopsOf(*this);
  TensorCollectives all;
  if (by_heads()) {
    const auto exchanged = [this](int64_t numbers) -> TensorCollective {
      return {Collective::kAllToAll, width(samples * tokens / split.context * numbers)};
    };
    all.forward = apart ? std::vector<TensorCollective>{exchanged(q_row), exchanged(row)}
                        : std::vector<TensorCollective>{exchanged(q_row + row)};
    all.backward_input = all.forward;
    all.forward.push_back(exchanged(out_row));
    all.backward_input.insert(all.backward_input.begin(), exchanged(out_row));
    return all;
  }
  all.forward = {{Collective::kAllGather, AllKeys()}};
  all.backward_input = {{Collective::kAllGather, AllKeys()},
                        {Collective::kReduceScatter, AllKeys()}};
  return all;
}

// Weights are exponentials.
Operation ContextAttention::Merges() const {
  int64_t rows = 0;
  for (const ContextStep& step : RingOf(*this).steps) {
    ForEachCall(*this, 0, step.shift, [&](int64_t queries, int64_t first) {
      if (step.shift != 0 || (causal && first > 0)) rows += queries;
    });
  }
  return MemoryOperation(OperationKind::kGelu, 3 * samples * rows * out_row);
}

Operation ContextAttention::Reorders(int64_t numbers) const {
  return MemoryOperation(OperationKind::kActivation, 4 * numbers);
}

void ContextAttention::AddOperations(LayerOperations* ops) const {
  if (by_heads()) {
    const Operation all = Reorders(samples * tokens / split.context * (q_row + row + out_row));
    ops->forward.push_back(all);
    ops->backward_input.push_back(all);
    return;
  }
  const int64_t own = samples * tokens / split.context * row, copy = apart ? 0 : 2 * own;
  const auto add_own = [](int64_t numbers, std::vector<Operation>* pass) {
    pass->push_back(OwnOperation(OperationKind::kElementwise, numbers));
  };
  if (!ring()) {
    // Ours: k and v are copied out of q, k and v, and into the order of tokens; backward again, and
    // so are their gradients.
    const int64_t copies = copy + 2 * samples * tokens * row;
    add_own(copies, &ops->forward);
    add_own(2 * copies, &ops->backward_input);
    return;
  }
  ops->forward.push_back(Merges());
  if (copy > 0) add_own(copy, &ops->forward);
  // Each step's gradient starts at 0 and is added to what comes, or to the own.
  const auto steps = static_cast<int64_t>(RingOf(*this).steps.size());
  add_own(2 * copy + steps * own + (steps - 1) * 3 * own, &ops->backward_input);
}

}  // namespace pipelab
