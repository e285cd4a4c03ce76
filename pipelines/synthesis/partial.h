// Orders that are made in the order of time, one pass after the other: the states that the exact
// search and the beam go through, and a lower bound of all that a state can become.
//
//   const PartialOrders rules(problem, heads, {.window = problem.micro_batches});
//   PartialOrders::State state = rules.Start();
//   PartialOrders::Decision next;
//   while (rules.Next(state, &next)) rules.Apply(next.device, next.symbols[0], &state);
//
// A decision is about the device on which a pass can begin the earliest. One of the passes that can
// begin then does; or the device waits for a pass that cannot begin yet (Delay). Every order whose
// passes begin as early as its words allow is reached by one way of decisions.
//
// Waiting rules passes out, until the device runs another. Where one of them, of a kind that takes
// no room, would be over before the next pass begins, the order with it in front is no longer and
// fits as well: the way is closed.
//
// Copies are symbols like passes, and take the device no time; they are never the reason to close a
// way, since the order of a link's copies matters. Nor is a forward whose micro-batch goes to the
// host, or may go.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_PARTIAL_H_
#define PIPELAB_PIPELINES_SYNTHESIS_PARTIAL_H_

#include <cstdint>
#include <vector>

#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/heads.h"
#include "pipelines/synthesis/problem.h"

namespace pipelab {

class PartialOrders {
 public:
  struct Options {
    int window = 16;       // micro-batches whose results wait for the next stage, at most
    bool reserve = false;  // room stays for the oldest micro-batch, so that no way ends in a lock
    // A copy back begins so many times its length at most before the copy must be there, as far as
    // the state tells; below 0: no matter.
    double lead = -1;
    const SentSet* sent = nullptr;  // what goes to the host; null: both is looked at
  };
  using State = std::vector<int64_t>;
  struct Decision {
    int device = 0;
    int64_t begin = 0;
    std::vector<Symbol> symbols;  // that can begin then
    std::vector<Symbol> later;    // known, and can begin before the first of these could end
  };
  enum class Outcome : uint8_t { kDecision, kDone, kClosed };

  PartialOrders(const SynthesisProblem& problem, const Heads& heads, Options options);

  State Start() const;
  Outcome Next(const State& state, Decision* decision) const;
  // What Apply changes.
  struct Undo {
    int64_t free, level, ruled_out, deadline, arrival;
    int32_t arrival_at;
    int64_t link, out, leaving, count;
  };
  void Apply(int device, Symbol symbol, State* state, Undo* undo = nullptr) const;
  void Revert(int device, Symbol symbol, const Undo& undo, State* state) const;
  // The device waits from `decision.begin` on.
  void Delay(const Decision& decision, State* state) const;

  // No makespan of what becomes of it is less. `device`: where that is (-1: along the chain).
  // `sum`: of all devices' own bounds.
  int64_t LowerBound(const State& state, int* device = nullptr, int64_t* sum = nullptr) const;

  // The unit of the next symbol of the kind. N: there is none, and of copies none as things are.
  // Copies out are of a forward, copies back of a backward.
  int64_t UnitOf(const State& s, Symbol symbol) const {
    if (copies_ && IsCopy(symbol)) return NextSent(s, symbol);
    return s[counts_ + CountedAs(symbol)];
  }
  // Whether forward n, which is over, goes to the host.
  bool IsSent(const State& s, int stage, int64_t n) const {
    return (s[sent_ + stage * sent_words_ + n / 64] >> n % 64 & 1) != 0;
  }
  int64_t Free(const State& s, int device) const { return s[device]; }
  int64_t RuledOut(const State& s, int device) const { return s[2 * D_ + device]; }
  // When the next pass of the kind can begin but for its device; kNoMakespan: it is not known.
  int64_t Arrival(const State& s, Symbol symbol) const;
  // What the copy out is of that the device has not waited for, stage * slices + slice, and 1; 0:
  // none.
  int64_t Leaving(const State& s, int device) const { return s[links_ + 2 * D_ + device]; }
  // Whether its results that wait for the next stage are as many as the window. The last stage's
  // wait until all slices of their micro-batch are taken.
  bool IsFull(const State& s, Symbol symbol) const {
    const int next = passes_[symbol * K_].next;
    if (next < 0) return false;
    int64_t taken = s[counts_ + next];
    if (K_ > 1 && IsMirrored(symbol)) taken -= taken % K_;
    return UnitOf(s, symbol) - taken >= window_;
  }
  // Whether each unit between its F and its I goes to the host, of stages that may offload.
  template <typename Use>
  void ForEachHeld(const State& s, Use use) const {
    for (int stage = 0; copies_ && stage < S_; ++stage) {
      if (!p_.MayOffload(stage)) continue;
      const int64_t forwards = s[counts_ + SymbolOf(stage, kPassF)];
      const int64_t inputs = s[counts_ + SymbolOf(stage, kPassI)];
      for (int64_t n = inputs - inputs % K_; n < forwards; ++n) {
        if (p_.MateOf(static_cast<int>(n)) >= inputs) use(IsSent(s, stage, n));
      }
    }
  }
  // Arrivals of results that nobody has taken, from the time on.
  void AppendTimes(const State& s, int64_t from_time, std::vector<int64_t>* times) const;
  const std::vector<Symbol>& SymbolsOf(int device) const { return symbols_of_[device]; }

 private:
  struct Pass {
    int64_t length = 0, ahead = 0, hop = 0, need = 0, change = 0, reserve = 0;
    int64_t copy = 0;  // on the link; `length` is then 0
    int32_t next = -1;
    int32_t to = 0;          // which unit of `next` takes its result, from its own on
    int bit = 0;             // of the device's symbols
    bool takes_room = true;  // put in front, it might not fit, or others behind it
  };
  // Passes of a device whose tails are this at least: the first `count` of each symbol.
  struct Tails {
    int64_t tail;
    std::vector<int32_t> counts;  // as symbols_of_
  };

  // The symbol's n-th.
  const Pass& PassOf(Symbol symbol, int64_t n) const {
    return passes_[symbol * K_ + (K_ == 1 ? 0 : n % K_)];
  }
  // Whether its results go back to the same stage, the last slice's first.
  bool IsMirrored(Symbol symbol) const { return CountedAs(symbol) == SymbolOf(S_ - 1, kPassF); }
  // Where the state has when the input of an F or I arrives, and when the copy of an L is there.
  int64_t Slot(Symbol symbol, int64_t n) const {
    const int kind = KindOf(symbol) == kCopyL ? 2 : KindOf(symbol);
    return arrivals_ + (int64_t{3} * StageOf(symbol) + kind) * window_ + n % window_;
  }
  int64_t Level(const State& s, int device) const { return s[D_ + device]; }
  int64_t Deadline(const State& s, int device) const { return s[3 * D_ + device]; }
  // When the next of the kind can begin: its arrival, its device and, of a copy, the copy out
  // before it; an L no earlier than `lead` says. kNoMakespan: not as things are.
  int64_t BeginOf(const State& s, int device, Symbol symbol) const;
  bool Fits(const State& s, int device, Symbol symbol, const Pass& pass) const;
  bool LeavesRoom(const State& s, int device, Symbol symbol, const Pass& pass, int64_t level) const;
  int64_t ComingBack(const State& s, int device, Symbol symbol) const;
  void MakePass(Symbol symbol, int n, int64_t later);
  void ApplyCopy(int device, Symbol symbol, State* state) const;
  // `f` and `i` get the least begin of each stage's next F and I; returns the least makespan of all
  // that is left.
  int64_t NextBegins(const State& s, std::vector<int64_t>* f, std::vector<int64_t>* i) const;
  int64_t LinkBound(const State& s, int device) const;
  int64_t NextBack(const State& s, int stage) const;
  // The unit of the next copy of the kind; N: none whose forward, or micro-batch's forwards, are
  // over.
  int64_t NextSent(const State& s, Symbol copy) const;
  // ns of all copies of the kind that are left; where it is given what is sent, of those to come,
  // too.
  int64_t CopiesLeft(const State& s, Symbol copy) const;
  bool MayRun(const State& s, Symbol symbol) const;  // for Options::sent
  Symbol ProducerOf(Symbol symbol) const;

  const SynthesisProblem& p_;
  const Heads& heads_;
  const Options options_;
  const UnitSums sums_;
  const int D_, S_, K_, N_, window_;  // devices, stages, slices, units; units
  const bool limited_, copies_;
  const int sent_words_;                         // of bits, a stage
  int64_t counts_, arrivals_, links_, sent_;     // where they begin in a state
  std::vector<Pass> passes_;                     // [symbol][n % slices]
  std::vector<std::vector<Symbol>> symbols_of_;  // [device]
  std::vector<std::vector<Tails>> tails_;        // [device]
  std::vector<int64_t> leaving_bytes_;           // [stage * slices + slice] of a copy
  std::vector<int64_t> peak_;                    // [device] above what it holds, of any pass
  std::vector<int32_t> set_left_;                // [stage][n] of Options::sent, from n on
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_PARTIAL_H_
