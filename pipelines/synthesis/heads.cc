#include "pipelines/synthesis/heads.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace pipelab {
namespace {

// Micro-batch m of a symbol waits for m - lag of another, and then `delay`.
struct Wait {
  Symbol from;
  int lag;
  int64_t delay;
};
using Waits = std::vector<std::vector<Wait>>;  // [symbol]

// How many of its micro-batches a stage may hold when a forward of it begins, if each holds `each`
// of the device and `beside` is taken.
int MostBefore(Bytes free, Bytes beside, Bytes each, int micro_batches) {
  if (each <= Bytes(0)) return micro_batches;
  const int64_t most = (free - beside).value() / each.value();
  return static_cast<int>(std::clamp<int64_t>(most, 0, micro_batches));
}

void AddMemory(const SynthesisProblem& p, Waits* waits) {
  if (p.limits.free.empty()) return;
  // By one micro-batch in all earlier stages of the device; what may be at the host counts nothing.
  std::vector<Bytes> held(p.devices);
  for (int b = 0; b < p.stages(); ++b) {
    const int d = p.device_of_stage[b];
    const OrderLimits::Use f = p.Use(SymbolOf(b, kPassF)), i = p.Use(SymbolOf(b, kPassI));
    const Bytes peak = std::max(f.peak, f.change), free = p.limits.free[d];
    const Bytes kept = p.Offloads(b) ? Bytes(0) : f.change;
    const int until_input = MostBefore(free, peak + held[d], kept + held[d], p.micro_batches);
    (*waits)[SymbolOf(b, kPassF)].push_back({SymbolOf(b, kPassI), until_input + 1, 0});
    if (p.split_backward) {
      const Bytes least = std::min(kept, f.change + i.change);
      const int until_weight = MostBefore(free, peak, least, p.micro_batches);
      (*waits)[SymbolOf(b, kPassF)].push_back({SymbolOf(b, kPassW), until_weight + 1, 0});
    }
    held[d] += std::max(kept, Bytes(0));
  }
}

Waits WaitsOf(const SynthesisProblem& p, bool memory) {
  Waits waits(p.symbols());
  for (int s = 0; s < p.stages(); ++s) {
    for (int kind = 0; kind < kSymbolKinds; ++kind) {
      const Symbol symbol = SymbolOf(s, kind);
      if (p.Has(symbol)) waits[symbol].push_back({symbol, 1, 0});
    }
    if (p.Offloads(s)) {
      waits[SymbolOf(s, kCopyO)].push_back({SymbolOf(s, kPassF), 0, 0});
      waits[SymbolOf(s, kCopyL)].push_back({SymbolOf(s, kCopyO), 0, 0});
      waits[SymbolOf(s, kPassI)].push_back({SymbolOf(s, kCopyL), 0, 0});
    }
    const int64_t ahead = p.Rebuild(s);
    if (s > 0) waits[SymbolOf(s, kPassF)].push_back({SymbolOf(s - 1, kPassF), 0, p.Hop(s - 1)});
    waits[SymbolOf(s, kPassI)].push_back({SymbolOf(s, kPassF), 0, 0});
    if (s + 1 < p.stages()) {
      waits[SymbolOf(s, kPassI)].push_back({SymbolOf(s + 1, kPassI), 0, p.Hop(s) - ahead});
    }
    if (p.split_backward) waits[SymbolOf(s, kPassW)].push_back({SymbolOf(s, kPassI), 0, 0});
  }
  if (memory) AddMemory(p, &waits);
  return waits;
}

// The problem run backwards: micro-batch M - 1 - m takes the place of m.
Waits Reversed(const Waits& waits) {
  Waits reversed(waits.size());
  for (size_t to = 0; to < waits.size(); ++to) {
    for (const Wait& w : waits[to]) {
      reversed[w.from].push_back({static_cast<Symbol>(to), w.lag, w.delay});
    }
  }
  return reversed;
}

class Propagation {
 public:
  Propagation(const SynthesisProblem& p, const Waits& waits)
      : p_(p), waits_(waits), symbols_(waits.size()), M_(p.micro_batches) {
    symbols_of_.resize(size_t{2} * p.devices);
    for (size_t w = 0; w < symbols_; ++w) {
      const auto symbol = static_cast<Symbol>(w);
      if (p.Has(symbol)) symbols_of_[p.ResourceOf(symbol)].push_back(symbol);
    }
    head_.assign(symbols_ * M_, -1);
    before_.resize(symbols_ * M_ * symbols_);
  }

  std::vector<int64_t> Run() {
    // Depth first with a stack of its own; what waits form is a graph without cycles where each
    // device has room for one micro-batch.
    std::vector<std::pair<int, size_t>> stack;  // node, the wait that is looked at
    for (const std::vector<Symbol>& symbols : symbols_of_) {
      for (const Symbol symbol : symbols) {
        if (head_[Node(symbol, M_ - 1)] < 0) stack.push_back({Node(symbol, M_ - 1), 0});
        while (!stack.empty()) {
          auto& [node, at] = stack.back();
          const Symbol own = static_cast<Symbol>(node / M_);
          const int m = node % M_;
          if (at == waits_[own].size()) {
            Finish(own, m);
            stack.pop_back();
            continue;
          }
          const Wait& w = waits_[own][at++];
          if (m >= w.lag && head_[Node(w.from, m - w.lag)] < 0) {
            CHECK_LT(stack.size(), head_.size() + 1) << "waits in a circle";
            stack.push_back({Node(w.from, m - w.lag), 0});
          }
        }
      }
    }
    for (int64_t& head : head_) head = std::max<int64_t>(head, 0);
    return std::move(head_);
  }

 private:
  int Node(Symbol symbol, int m) const { return symbol * M_ + m; }
  int16_t* Before(int node) { return &before_[static_cast<size_t>(node) * symbols_]; }

  // Whose waits all are known.
  void Finish(Symbol symbol, int m) {
    const int node = Node(symbol, m);
    int16_t* before = Before(node);
    int64_t head = 0;
    for (const Wait& w : waits_[symbol]) {
      if (m < w.lag) continue;
      const int from = Node(w.from, m - w.lag);
      head = std::max(head, head_[from] + p_.Length(w.from) + w.delay);
      const int16_t* others = Before(from);
      for (size_t o = 0; o < symbols_; ++o) before[o] = std::max(before[o], others[o]);
      before[w.from] = std::max<int16_t>(before[w.from], static_cast<int16_t>(m - w.lag + 1));
    }
    head_[node] = std::max(head, OneAtATime(symbol, before));
  }

  int64_t OneAtATime(Symbol symbol, const int16_t* before) {
    set_.clear();
    for (const Symbol other : symbols_of_[p_.ResourceOf(symbol)]) {
      const int64_t length = p_.Length(other);
      for (int m = 0; m < before[other]; ++m) set_.push_back({head_[Node(other, m)], length});
    }
    std::sort(set_.begin(), set_.end());
    int64_t end = 0;  // of the whole set, each as early as it may: no set of them ends later
    for (const auto& [head, length] : set_) end = std::max(end, head) + length;
    return end;
  }

  const SynthesisProblem& p_;
  const Waits& waits_;
  const size_t symbols_;
  const int M_;
  std::vector<std::vector<Symbol>> symbols_of_;  // [resource]
  std::vector<int64_t> head_;                    // [node]
  std::vector<int16_t> before_;  // [node][symbol] so many first micro-batches are over before it
  std::vector<std::pair<int64_t, int64_t>> set_;
};

}  // namespace

Heads ComputeHeads(const SynthesisProblem& p, bool memory) {
  const Waits waits = WaitsOf(p, memory), reversed = Reversed(waits);
  Heads heads;
  heads.head = Propagation(p, waits).Run();
  heads.tail = Propagation(p, reversed).Run();
  const int M = p.micro_batches;
  for (size_t w = 0; w < waits.size(); ++w) {
    std::reverse(heads.tail.begin() + static_cast<int64_t>(w) * M,
                 heads.tail.begin() + static_cast<int64_t>(w + 1) * M);
  }
  return heads;
}

}  // namespace pipelab
