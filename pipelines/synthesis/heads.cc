#include "pipelines/synthesis/heads.h"

#include <algorithm>
#include <utility>

#include "glog/logging.h"

namespace pipelab {
namespace {

// A pass waits for another, and then `delay`.
struct Wait {
  int from;  // node: symbol * N + unit
  int64_t delay;
};
using Waits = std::vector<std::vector<Wait>>;  // [node]

class WaitsOfProblem {
 public:
  WaitsOfProblem(const SynthesisProblem& p, bool memory)
      : p_(p), N_(p.units()), waits_(static_cast<size_t>(p.symbols()) * N_) {
    for (int s = 0; s < p.stages(); ++s) AddStage(s);
    if (memory && !p.limits.free.empty()) AddMemory();
  }
  Waits Take() { return std::move(waits_); }

 private:
  void Add(Symbol symbol, int n, Symbol from, int n_from, int64_t delay = 0) {
    if (n_from >= 0) waits_[symbol * N_ + n].push_back({from * N_ + n_from, delay});
  }

  void AddStage(int s) {
    const Symbol f = SymbolOf(s, kPassF), i = SymbolOf(s, kPassI), w = SymbolOf(s, kPassW);
    for (int n = 0; n < N_; ++n) {
      for (const Symbol symbol : {f, i, w}) {
        if (p_.IsPass(symbol)) Add(symbol, n, symbol, n - 1);
      }
      if (s > 0) Add(f, n, SymbolOf(s - 1, kPassF), n, p_.Hop(s - 1));
      Add(i, n, f, p_.MateOf(n));
      if (s + 1 < p_.stages()) {
        Add(i, n, SymbolOf(s + 1, kPassI), n, p_.Hop(s) - p_.Rebuild(s, p_.SliceOf(i, n)));
      }
      if (p_.split_backward) Add(w, n, i, n);
    }
  }

  // What a stage holds at the least, if it has begun n F and i of its I are over: what its F took,
  // and [i] what I and the W that may be over leave of it.
  struct Held {
    int stage;
    std::vector<int64_t> left;  // [i] at the least of i or fewer
  };

  void AddMemory() {
    const UnitSums sums(p_);
    std::vector<std::vector<Held>> earlier(p_.devices);  // stages of the device before this one
    for (int b = 0; b < p_.stages(); ++b) {
      const int d = p_.device_of_stage[b];
      std::vector<int64_t> left(N_ + 1, 0);
      int64_t weights = 0;  // the least change by W
      for (int n = 0; n <= N_ && !p_.MayOffload(b); ++n) {
        if (p_.split_backward) weights = std::min(weights, sums.Change(SymbolOf(b, kPassW), n));
        left[n] = sums.Change(SymbolOf(b, kPassI), n) + weights;
      }
      AddRoom(sums, b, left, earlier[d]);
      bool grows = !p_.MayOffload(b);  // by each F
      for (int n = 1; n <= N_; ++n) {
        left[n] = std::min(left[n], left[n - 1]);
        const Symbol f = SymbolOf(b, kPassF);
        grows = grows && sums.Change(f, n) >= sums.Change(f, n - 1);
      }
      if (grows) earlier[d].push_back({b, std::move(left)});
    }
  }

  void AddRoom(const UnitSums& sums, int b, const std::vector<int64_t>& left,
               const std::vector<Held>& earlier) {
    const Symbol f = SymbolOf(b, kPassF), i = SymbolOf(b, kPassI), w = SymbolOf(b, kPassW);
    const bool held = !p_.MayOffload(b);
    int inputs = 0, weights = 0;  // those that must be over
    for (int n = 0; n < N_; ++n) {
      const OrderLimits::Use use = p_.Use(f, p_.SliceOf(f, n));
      const int64_t free = p_.limits.free[p_.device_of_stage[b]].value() -
                           std::max(use.peak, use.change).value() - (held ? sums.Change(f, n) : 0);
      const auto beside = [&](int over) {
        int64_t bytes = 0;
        for (const Held& a : earlier) {
          bytes +=
              std::max<int64_t>(0, sums.Change(SymbolOf(a.stage, kPassF), n + 1) + a.left[over]);
        }
        return bytes;
      };
      const int most = n - n % p_.slices;  // those of its own micro-batch come behind it
      while (inputs < most && left[inputs] + beside(inputs) > free) ++inputs;
      Add(f, n, i, inputs - 1);
      if (!p_.split_backward || !held) continue;
      const auto fits = [&](int over) {
        for (int back = n; back >= over; --back) {
          if (sums.Change(i, back) + sums.Change(w, over) <= free) return true;
        }
        return false;
      };
      while (weights < most && !fits(weights)) ++weights;
      Add(f, n, w, weights - 1);
    }
  }

  const SynthesisProblem& p_;
  const int N_;
  Waits waits_;
};

// The problem run backwards: unit N - 1 - n takes the place of n.
Waits Reversed(const Waits& waits, int N) {
  const auto mirror = [N](int node) { return node + N - 1 - 2 * (node % N); };
  Waits reversed(waits.size());
  for (size_t to = 0; to < waits.size(); ++to) {
    for (const Wait& w : waits[to]) {
      reversed[mirror(w.from)].push_back({mirror(static_cast<int>(to)), w.delay});
    }
  }
  return reversed;
}

class Propagation {
 public:
  // `lengths`: [node] ns.
  Propagation(const SynthesisProblem& p, const Waits& waits, const std::vector<int64_t>& lengths)
      : p_(p), waits_(waits), lengths_(lengths), symbols_(p.symbols()), N_(p.units()) {
    symbols_of_.resize(p.devices);
    begun_.resize(symbols_of_.size());
    for (size_t w = 0; w < symbols_; ++w) {
      const auto symbol = static_cast<Symbol>(w);
      if (p.IsPass(symbol)) symbols_of_[p.device_of_stage[StageOf(symbol)]].push_back(symbol);
    }
    head_.assign(symbols_ * N_, -1);
    before_.resize(symbols_ * N_ * symbols_);
  }

  std::vector<int64_t> Run() {
    // Depth first with a stack of its own; what waits form is a graph without cycles where each
    // device has room for one micro-batch.
    std::vector<std::pair<int, size_t>> stack;  // node, the wait that is looked at
    for (const std::vector<Symbol>& symbols : symbols_of_) {
      for (const Symbol symbol : symbols) {
        if (head_[Node(symbol, N_ - 1)] < 0) stack.push_back({Node(symbol, N_ - 1), 0});
        while (!stack.empty()) {
          auto& [node, at] = stack.back();
          if (at == waits_[node].size()) {
            Finish(node);
            stack.pop_back();
            continue;
          }
          const Wait& w = waits_[node][at++];
          if (head_[w.from] < 0) {
            CHECK_LT(stack.size(), head_.size() + 1) << "waits in a circle";
            stack.push_back({w.from, 0});
          }
        }
      }
    }
    for (int64_t& head : head_) head = std::max<int64_t>(head, 0);
    return std::move(head_);
  }

 private:
  int Node(Symbol symbol, int n) const { return symbol * N_ + n; }
  int16_t* Before(int node) { return &before_[static_cast<size_t>(node) * symbols_]; }

  // Whose waits all are known.
  void Finish(int node) {
    int16_t* before = Before(node);
    int64_t head = 0;
    for (const Wait& w : waits_[node]) {
      head = std::max(head, head_[w.from] + lengths_[w.from] + w.delay);
      const int16_t* others = Before(w.from);
      for (size_t o = 0; o < symbols_; ++o) before[o] = std::max(before[o], others[o]);
      int16_t& own = before[w.from / N_];
      own = std::max(own, static_cast<int16_t>(w.from % N_ + 1));
    }
    const auto symbol = static_cast<Symbol>(node / N_);
    std::vector<Begun>& begun = begun_[p_.device_of_stage[StageOf(symbol)]];
    int64_t end =
        0;  // of all that is over before, each as early as it may: no set of them ends later
    for (const Begun& other : begun) {
      if (other.unit < before[other.symbol]) end = std::max(end, other.head) + other.length;
    }
    head_[node] = std::max(head, end);
    const auto place =
        std::upper_bound(begun.begin(), begun.end(), head_[node],
                         [](int64_t own, const Begun& other) { return own < other.head; });
    begun.insert(place, {head_[node], lengths_[node], symbol, node % N_});
  }

  const SynthesisProblem& p_;
  const Waits& waits_;
  const std::vector<int64_t>& lengths_;
  const size_t symbols_;
  const int N_;
  std::vector<std::vector<Symbol>> symbols_of_;  // [device]
  std::vector<int64_t> head_;                    // [node]
  std::vector<int16_t> before_;  // [node][symbol] so many first units are over before it
  struct Begun {
    int64_t head, length;
    Symbol symbol;
    int unit;
  };
  std::vector<std::vector<Begun>> begun_;  // [device] whose heads are known, the least first
};

}  // namespace

Heads ComputeHeads(const SynthesisProblem& p, bool memory) {
  const int N = p.units();
  const Waits waits = WaitsOfProblem(p, memory).Take(), reversed = Reversed(waits, N);
  std::vector<int64_t> lengths(waits.size(), 0);
  for (size_t node = 0; node < waits.size(); ++node) {
    const auto symbol = static_cast<Symbol>(node / N);
    if (p.IsPass(symbol)) lengths[node] = p.Length(symbol, p.SliceOf(symbol, node % N));
  }
  const auto mirror = [N](std::vector<int64_t>* of_nodes) {
    for (auto at = of_nodes->begin(); at != of_nodes->end(); at += N) std::reverse(at, at + N);
  };
  Heads heads;
  heads.head = Propagation(p, waits, lengths).Run();
  mirror(&lengths);
  heads.tail = Propagation(p, reversed, lengths).Run();
  mirror(&heads.tail);
  return heads;
}

}  // namespace pipelab
