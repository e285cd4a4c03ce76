#include "pipelines/synthesis/synthesis_testing.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "pipelines/schedules/guided_order.h"
#include "pipelines/synthesis/evaluate.h"
#include "tools/base/rng.h"

namespace pipelab {

SynthesisProblem RandomProblem(uint64_t seed, int devices, int micro_batches,
                               std::vector<int> device_of_stage) {
  const CounterRng random(seed, "problem");
  SynthesisProblem p = UnitProblem(devices, micro_batches, std::move(device_of_stage));
  const int S = p.stages();
  for (int s = 0; s < S; ++s) {
    p.lengths.forward[s] = 1 + random.Below(8 * s, 6);
    p.lengths.backward_input[s] = 1 + random.Below(8 * s + 1, 6);
    p.lengths.backward_weight[s] = 1 + random.Below(8 * s + 2, 6);
    p.lengths.recompute[s] = 1 + random.Below(8 * s + 3, 6);
    p.lengths.hop[s] = random.Below(1000, 3);
    const auto kept = static_cast<int64_t>(2 + random.Below(8 * s + 4, 3));
    const auto for_weight = static_cast<int64_t>(random.Below(8 * s + 5, kept + 1));
    p.limits.forward[s] = {Bytes(kept + random.Below(8 * s + 6, 2)), Bytes(kept)};
    p.limits.backward_input[s] = {Bytes(1), Bytes(for_weight - kept)};
    p.limits.backward_weight[s] = {Bytes(0), Bytes(-for_weight)};
  }
  const uint64_t recompute = random.Below(2000, 6);  // by all, some or none
  for (int s = 0; s < S && recompute < 3; ++s) {
    p.recomputed.push_back(recompute == 0 || random.Below(8 * s + 7, 2) == 0);
  }
  p.split_backward = random.Below(2001, 4) != 0;
  if (!p.split_backward) {
    for (int s = 0; s < S; ++s) {
      p.limits.backward_input[s].change = Bytes(0) - p.limits.forward[s].change;
    }
  }
  p.limits.free.assign(devices, Bytes(6 + random.Below(2002, 14) * S / devices));
  return p;
}

SynthesisProblem RandomSlices(uint64_t seed, int devices, int micro_batches, int slices,
                              std::vector<int> device_of_stage) {
  SynthesisProblem p = RandomProblem(seed, devices, micro_batches, std::move(device_of_stage));
  const CounterRng random(seed, "slices");
  const SynthesisProblem whole = p;
  p.slices = slices;
  for (auto* list : {&p.lengths.forward, &p.lengths.recompute, &p.lengths.backward_input,
                     &p.lengths.backward_weight}) {
    list->resize(p.stages() * slices);
  }
  for (auto* list : {&p.limits.forward, &p.limits.backward_input, &p.limits.backward_weight}) {
    list->resize(p.stages() * slices);
  }
  for (int part = 0; part < p.stages() * slices; ++part) {
    const int s = part / slices, slice = part % slices;
    const auto below = [&](int i, int most) {
      return static_cast<int64_t>(random.Below(16 * part + i, most));
    };
    p.lengths.forward[part] = whole.lengths.forward[s] + below(0, 3) + slice;
    p.lengths.recompute[part] = whole.lengths.recompute[s] + below(1, 3);
    p.lengths.backward_input[part] = whole.lengths.backward_input[s] + below(2, 3) + slice;
    p.lengths.backward_weight[part] = whole.lengths.backward_weight[s] + below(3, 3);
    const int64_t kept = 2 + below(4, 3), for_weight = p.split_backward ? below(5, 3) : 0;
    const int64_t handed = slice > 0 ? 1 : 1 - slices;  // gradients of keys and values
    p.limits.forward[part] = {Bytes(kept + below(6, 2)), Bytes(kept)};
    p.limits.backward_input[part] = {Bytes(1), Bytes(for_weight - kept + handed)};
    p.limits.backward_weight[part] = {Bytes(0), Bytes(-for_weight)};
  }
  p.limits.free.assign(devices, Bytes(4 + random.Below(9999, 9) * slices * p.stages() / devices));
  if (seed % 5 == 4) p.limits.free.clear();
  return p;
}

SynthesisProblem UnitSlices(int devices, int micro_batches, int slices, std::vector<int> placed) {
  SynthesisProblem p = UnitProblem(devices, micro_batches, std::move(placed));
  p.slices = slices;
  const std::vector<int64_t> hop = p.lengths.hop;
  p.lengths = PassLengths::Unit(p.stages() * slices);
  p.lengths.hop = hop;
  p.limits.forward.assign(p.stages() * slices, {Bytes(1), Bytes(1)});
  p.limits.backward_input.assign(p.stages() * slices, {});
  p.limits.backward_weight.assign(p.stages() * slices, {Bytes(0), Bytes(-1)});
  return p;
}

namespace {

SynthesisProblem WithCopies(uint64_t seed, SynthesisProblem p) {
  const CounterRng random(seed, "copies");
  p.recomputed.clear();
  for (int part = 0; part < p.stages() * p.slices; ++part) {
    p.host_copy.push_back(1 + static_cast<int64_t>(random.Below(2 * part, 5)));
    if (p.slices > 1) p.read_later.push_back(Bytes(random.Below(1000 + part, 2)));
  }
  for (int s = 0; s < p.stages(); ++s) p.may_offload.push_back(random.Below(2 * s + 1, 2) == 0);
  p.may_offload[seed % p.stages()] = true;
  if (seed % 4 == 3) p.limits.free.clear();
  return p;
}

}  // namespace

SynthesisProblem RandomCopies(uint64_t seed, int devices, int micro_batches,
                              std::vector<int> device_of_stage) {
  return WithCopies(seed, RandomProblem(seed, devices, micro_batches, std::move(device_of_stage)));
}

SynthesisProblem RandomSlicedCopies(uint64_t seed, int devices, int micro_batches, int slices,
                                    std::vector<int> device_of_stage) {
  return WithCopies(seed,
                    RandomSlices(seed, devices, micro_batches, slices, std::move(device_of_stage)));
}

SynthesisProblem HalfRoom(int64_t copy, int micro_batches) {
  SynthesisProblem p = UnitProblem(8, micro_batches, LoopedDevices(8, 1));
  p.limits.free.assign(8, Bytes(4));
  p.host_copy.assign(8, copy);
  p.may_offload.assign(8, false);
  std::fill_n(p.may_offload.begin(), 4, true);
  return p;
}

namespace {

// All words of a device that fit.
void AllWords(const SynthesisProblem& p, int device, std::vector<Symbol>* word,
              std::vector<std::vector<Symbol>>* words) {
  bool grew = false;
  for (int s = 0; s < p.stages(); ++s) {
    if (p.device_of_stage[s] != device) continue;
    std::vector<int> done(kSymbolKinds, 0);
    std::vector<bool> sent;  // [unit] whose F is done
    for (const Symbol symbol : *word) {
      if (StageOf(symbol) != s) continue;
      ++done[KindOf(symbol)];
      if (IsForward(symbol)) sent.push_back(KindOf(symbol) == kSentF);
    }
    const auto forwards = static_cast<int>(sent.size()), inputs = done[kPassI];
    // A micro-batch's backwards need all its forwards.
    const bool can_back = inputs / p.slices * p.slices + p.slices <= forwards;
    // Copies back are in the order of backwards: each needs its own copy out.
    int trips = 0, returns = 0;  // that the next backward needs, that can be asked back
    for (int n = 0, returned = 0; n < forwards / p.slices * p.slices; ++n) {
      if (!sent[p.MateOf(n)]) continue;
      if (n <= inputs) ++trips;
      const int64_t out = std::count(sent.begin(), sent.begin() + p.MateOf(n), true);
      if (returned++ == done[kCopyL]) returns = out < done[kCopyO] ? 1 : 0;
    }
    const std::vector<bool> can = {
        forwards < p.units(), inputs < p.units() && can_back && trips <= done[kCopyL],
        done[kPassW] < inputs, done[kCopyO]<done[kSentF], returns> 0, forwards < p.units()};
    grew = grew || inputs < p.units() || (p.split_backward && done[kPassW] < p.units());
    for (int kind = 0; kind < kSymbolKinds; ++kind) {
      if (!p.Has(SymbolOf(s, kind)) || !can[kind]) continue;
      word->push_back(SymbolOf(s, kind));
      AllWords(p, device, word, words);
      word->pop_back();
    }
  }
  if (!grew && IsWordOf(p, device, *word)) words->push_back(*word);
}

}  // namespace

int64_t ShortestOfAll(const SynthesisProblem& p, const SentSet* sent) {
  std::vector<std::vector<std::vector<Symbol>>> words(p.devices);
  for (int d = 0; d < p.devices; ++d) {
    std::vector<Symbol> word;
    AllWords(p, d, &word, &words[d]);
    const auto other = [&](const std::vector<Symbol>& own) {
      const SentSet of_word = SentIn(p, {own});
      for (int s = 0; s < p.stages(); ++s) {
        if (p.device_of_stage[s] == d && of_word[s] != (*sent)[s]) return true;
      }
      return false;
    };
    if (sent == nullptr) continue;
    words[d].erase(std::remove_if(words[d].begin(), words[d].end(), other), words[d].end());
  }
  WordEvaluator evaluator(p);
  int64_t least = kNoMakespan;
  OrderWords chosen(p.devices);
  const std::function<void(int)> choose = [&](int d) {
    if (d == p.devices) {
      least = std::min(least, evaluator.Makespan(chosen));
      return;
    }
    for (const auto& word : words[d]) {
      chosen[d] = word;
      choose(d + 1);
    }
  };
  choose(0);
  return least;
}

}  // namespace pipelab
