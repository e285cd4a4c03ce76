// What `pipelab synthesize` solves: a chain of stages on devices, M alike micro-batches, the time
// and memory of each pass; wanted is the order of passes on each device with the shortest step.
//
//   SynthesisProblem problem = UnitProblem(/*devices=*/4, /*micro_batches=*/8, {0, 1, 2, 3});
//   problem.limits.free.assign(4, Bytes(4));        // four activations a device
//   PIPELAB_RETURN_IF_ERROR(CheckProblem(problem));
//   OrderWords words = ...;                              // synthesize.h finds them
//   Schedule schedule = ScheduleOf(problem, words);
//
// Micro-batches are alike. Given any schedule, let each stage give its n-th forward, input gradient
// and weight gradient to micro-batch n: times stay, and what was ready in time still is. So every
// stage may be taken to run micro-batches in order, and an order is a word per device over
// (stage, kind), M of each. What a device holds depends on its word alone.
//
// Micro-batches may run in token slices (S; Seq1F1B). There are then M S *units* of each symbol: a
// stage's forward n is of micro-batch n / S and its slice n % S; its backward n, and the weight
// gradient, of the same micro-batch and slice S - 1 - n % S, since causal attention looks back. So
// a micro-batch's first backward waits for its last forward. Slices are not alike, so this order of
// a stage's units is a rule of the problem: bounds and proofs are about the orders that keep it, as
// the catalogue's sliced schemes do.
//
// A stage that may offload has three kinds more, and chooses for each micro-batch: one whose
// forward is a kSentF goes to the host (O) and comes back (L) between F and I; one whose forward is
// a kPassF stays. Both kinds of forwards are counted together; the n-th O and L are of the n-th
// kSentF. The choice, and where O and L are, is a part of the order. Copies of a device follow one
// another on its host link, in the order of its word, beside its passes. As in a step that runs
// (lower.h), a device waits at O and L until the copy out before has ended, and only then has its
// room again; from L on the room is taken, and I waits for the copy. Where only some go to the
// host, that each stage runs micro-batches in order is a rule, as with slices. Of slices each is
// chosen: they go out in the order of their forwards, and come back in that of their backwards,
// when all forwards of their micro-batch are over. What later slices read stays.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_PROBLEM_H_
#define PIPELAB_PIPELINES_SYNTHESIS_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/guided_order.h"
#include "tools/base/units.h"

namespace pipelab {

// A symbol of a word: a stage and a kind.
using Symbol = uint16_t;
enum PassKind : uint8_t { kPassF, kPassI, kPassW, kCopyO, kCopyL, kSentF, kSymbolKinds };
using OrderWords = std::vector<std::vector<Symbol>>;  // [device]

inline int StageOf(Symbol symbol) { return symbol / kSymbolKinds; }
inline int KindOf(Symbol symbol) { return symbol % kSymbolKinds; }
inline bool IsCopy(Symbol symbol) { return KindOf(symbol) == kCopyO || KindOf(symbol) == kCopyL; }
inline bool IsForward(Symbol symbol) {
  return KindOf(symbol) == kPassF || KindOf(symbol) == kSentF;
}
inline Symbol SymbolOf(int stage, int kind) {
  return static_cast<Symbol>(kSymbolKinds * stage + kind);
}
// With which it is counted: of both kinds of forwards kPassF.
inline Symbol CountedAs(Symbol symbol) {
  return KindOf(symbol) == kSentF ? SymbolOf(StageOf(symbol), kPassF) : symbol;
}

struct SynthesisProblem {
  int devices = 0, micro_batches = 0;
  int slices = 1;                    // of a micro-batch
  std::vector<int> device_of_stage;  // a chain
  // False: backwards are whole. There is no W then, and I means the whole backward (B) in this
  // file.
  bool split_backward = true;
  // [stage] Whether each backward rebuilds its activations first (R); empty: none does.
  std::vector<bool> recomputed;
  // ns. [stage * slices + slice]; `hop` by stage.
  PassLengths lengths;
  // [stage * slices + slice] ns that a copy of what its forward keeps takes to the host's memory,
  // and back; empty: there is no way to it.
  std::vector<int64_t> host_copy;
  // [stage * slices + slice] Of what its forward keeps, what later slices read; empty: nothing.
  std::vector<Bytes> read_later;
  // [stage] Whether micro-batches may go there between F and I; empty: of none. Not of stages that
  // are recomputed.
  std::vector<bool> may_offload;
  // The use of a pass, [stage * slices + slice]: memory above what the device holds while it runs,
  // and what it changes. No limit of time. Of whole backwards, `backward_input` is B's and
  // `backward_weight` is not looked at.
  OrderLimits limits;

  int stages() const { return static_cast<int>(device_of_stage.size()); }
  int units() const { return micro_batches * slices; }
  // The slice of the symbol's n-th pass; of a copy that is out of forward n, or back for backward
  // n.
  int SliceOf(Symbol symbol, int n) const {
    const bool first = IsForward(symbol) || KindOf(symbol) == kCopyO;
    return first ? n % slices : slices - 1 - n % slices;
  }
  // The forward whose micro-batch and slice backward n has, and the backward that forward n has.
  int MateOf(int n) const {
    return slices == 1 ? n : n + slices - 1 - 2 * (n % slices);  // often asked
  }
  int kinds() const { return split_backward ? 3 : 2; }  // of passes
  int symbols() const { return kSymbolKinds * stages(); }
  bool MayOffload(int stage) const { return !may_offload.empty() && may_offload[stage]; }
  bool HasCopies() const;  // or may have some
  bool Has(Symbol symbol) const {
    return KindOf(symbol) >= kCopyO ? MayOffload(StageOf(symbol)) : KindOf(symbol) < kinds();
  }
  // Whether it is an F, I or W that the problem has; a kSentF is counted with F.
  bool IsPass(Symbol symbol) const { return KindOf(symbol) < kinds(); }
  int64_t Symbols() const;  // of all words together, at the most
  bool Recomputes(int stage) const { return !recomputed.empty() && recomputed[stage]; }
  // The time of the R in front of an I, which does not wait for the gradient; 0 without.
  int64_t Rebuild(int stage, int slice = 0) const {
    return Recomputes(stage) ? lengths.recompute[stage * slices + slice] : 0;
  }
  bool RecomputesAll() const;
  int64_t Length(Symbol symbol, int slice = 0) const;  // of an I with its R; of a copy on the link
  OrderLimits::Use Use(Symbol symbol, int slice = 0) const;
  Bytes Moved(int stage, int slice = 0) const;  // by a copy out, or back
  // From `stage` to the next one; 0 on one device.
  int64_t Hop(int stage) const {
    return device_of_stage[stage] == device_of_stage[stage + 1] ? 0 : lengths.hop[stage];
  }
  int64_t Work(int device) const;  // of all its passes
};

// F = I = W = 1, hops of 0; an activation is 1 from F to W; no limit of memory.
SynthesisProblem UnitProblem(int devices, int micro_batches, std::vector<int> device_of_stage);

// Stage s of V * P on device s % P, or down the devices and up again.
std::vector<int> LoopedDevices(int devices, int virtual_stages);
std::vector<int> ZigZagDevices(int devices, int virtual_stages);

// InvalidArgument or ResourceExhausted, one line: other numbers of stages, times below 0 or too
// long to be counted, a device that cannot hold one micro-batch of its stages.
absl::Status CheckProblem(const SynthesisProblem& problem);

// A stage sent the forwards `sent`, `count` of them: which of these the n-th copy back is of, where
// its micro-batch's forwards are all over.
inline int64_t PlaceOfBack(const int32_t* sent, int64_t count, int64_t n, int64_t slices) {
  if (slices == 1) return n;
  int64_t first = n, last = n;
  while (first > 0 && sent[first - 1] / slices == sent[n] / slices) --first;
  while (last + 1 < count && sent[last + 1] / slices == sent[n] / slices) ++last;
  return first + last - n;
}

// The room of a device along its word. `Take`: whether the next symbol fits.
class DeviceRoom {
 public:
  DeviceRoom(const SynthesisProblem& problem, int device);
  bool Take(Symbol symbol);

 private:
  int NextUnit(Symbol symbol);

  const SynthesisProblem& p_;
  const bool limited_;
  Bytes free_, level_, leaving_;        // what a copy out still holds
  std::vector<int> done_;               // [symbol]
  std::vector<std::vector<int>> sent_;  // [stage] forwards
};

// Sums over a symbol's first n passes: ns, and bytes.
class UnitSums {
 public:
  explicit UnitSums(const SynthesisProblem& problem);
  int64_t Length(Symbol symbol, int64_t n) const { return lengths_[symbol * stride_ + n]; }
  int64_t Change(Symbol symbol, int64_t n) const { return changes_[symbol * stride_ + n]; }

 private:
  const int64_t stride_;
  std::vector<int64_t> lengths_, changes_;
};

// Whether the device's word has all units of each pass, each I behind its F (O, L) and each W
// behind its I, and fits its memory.
bool IsWordOf(const SynthesisProblem& problem, int device, const std::vector<Symbol>& word);
bool FitsMemory(const SynthesisProblem& problem, int device, const std::vector<Symbol>& word);

// Which go to the host: [stage][forward].
using SentSet = std::vector<std::vector<bool>>;
// Evenly this share of the forwards of stages that may offload: 1 is all, a half every second one.
SentSet EvenlySent(const SynthesisProblem& problem, double share);
SentSet SentIn(const SynthesisProblem& problem, const OrderWords& words);

// With the recomputes, offloads and reloads.
Schedule ScheduleOf(const SynthesisProblem& problem, const OrderWords& words);
// The words of a schedule over the same stages and devices, one replica; a B is I and W of a
// problem that splits backwards. InvalidArgument where the problem cannot say it.
absl::StatusOr<OrderWords> WordsOf(const SynthesisProblem& problem, const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_PROBLEM_H_
