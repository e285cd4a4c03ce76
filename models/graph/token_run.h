// Tokens that follow one another in one sequence, whose earlier ones are in a cache: what a pass of
// inference has of each request. A prompt comes in one run or several, and then a token at a time.
//
//   TokenRun{/*slot=*/2, /*first=*/40, /*count=*/1, /*predicts=*/true}   // token 40 of slot 2
#ifndef PIPELAB_MODELS_GRAPH_TOKEN_RUN_H_
#define PIPELAB_MODELS_GRAPH_TOKEN_RUN_H_

#include <cstdint>

#include "absl/types/span.h"

namespace pipelab {

// Tokens [first, first + count) of the sequence that has the cache's slot.
struct TokenRun {
  int32_t slot = 0;
  int64_t first = 0, count = 0;
  bool predicts = false;  // whether the token after the last one is asked for

  int64_t end() const { return first + count; }
  friend bool operator==(const TokenRun& a, const TokenRun& b) {
    return a.slot == b.slot && a.first == b.first && a.count == b.count && a.predicts == b.predicts;
  }
};

// Rows of the pass's tensors: run after run.
inline int64_t RowsOf(absl::Span<const TokenRun> runs) {
  int64_t rows = 0;
  for (const TokenRun& run : runs) rows += run.count;
  return rows;
}

// Tokens that the pass gives.
inline int64_t PredictionsOf(absl::Span<const TokenRun> runs) {
  int64_t tokens = 0;
  for (const TokenRun& run : runs) tokens += run.predicts ? 1 : 0;
  return tokens;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_TOKEN_RUN_H_
