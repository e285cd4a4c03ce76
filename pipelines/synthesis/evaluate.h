// How long words take, fast enough to be asked a hundred thousand times.
//
//   WordEvaluator evaluator(problem);
//   // ns; kNoMakespan: they wait for each other
//   const int64_t makespan = evaluator.Makespan(words);
//   evaluator.Begins(d)[i];                               // of the last words: when the pass began
//
// Equal to Simulate of the schedule on the same times, with messages that nothing delays.
// O(passes); allocates nothing after the first call. Memory is not looked at (FitsMemory).
#ifndef PIPELAB_PIPELINES_SYNTHESIS_EVALUATE_H_
#define PIPELAB_PIPELINES_SYNTHESIS_EVALUATE_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "pipelines/synthesis/problem.h"

namespace pipelab {

constexpr int64_t kNoMakespan = std::numeric_limits<int64_t>::max() / 4;

// A pass in words.
struct WordPlace {
  int device = 0, index = 0;
};

class WordEvaluator {
 public:
  explicit WordEvaluator(const SynthesisProblem& problem);

  int64_t Makespan(const OrderWords& words);
  const std::vector<int64_t>& Begins(int device) const { return begins_[device]; }
  // A critical path of the last words, which end and have no copies: passes that follow one another
  // without a pause from the first time to the last, in order; what each waits for is the one
  // before it.
  std::vector<WordPlace> CriticalPath(const OrderWords& words) const;

 private:
  // When the device goes on.
  int64_t BeginCopy(int device, Symbol symbol, int64_t now);

  struct Pass {
    int64_t length = 0, after_arrival = 0;  // it may begin so long before its input is there
    int64_t hop = 0;                        // its result to `next`
    int32_t next = -1, device_of_next = -1;
    int32_t to = 0;  // which unit of `next` takes it, from its own on
  };
  // The times of the symbol's n-th pass, or its copy for that unit.
  const Pass& PassOf(Symbol symbol, int64_t n) const {
    return passes_[symbol * slices_ + (slices_ == 1 ? 0 : n % slices_)];
  }

  const int64_t units_, slices_;
  std::vector<Pass> passes_;                  // [symbol][n % slices]
  std::vector<int64_t> arrivals_;             // [symbol][unit]
  std::vector<int32_t> counts_;               // [symbol] begun
  std::vector<std::vector<int64_t>> begins_;  // [device][index]
  std::vector<size_t> at_;
  std::vector<int64_t> free_;
  std::vector<int32_t> ready_;
  const bool copies_;
  std::vector<int64_t> link_, out_;  // [device] when its link is free, the last copy out over
  std::vector<int64_t> back_;        // [symbol][unit] of I: when its copy is there
  std::vector<int32_t> sent_;        // [symbol][n] of kSentF: which forward the n-th is
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_EVALUATE_H_
