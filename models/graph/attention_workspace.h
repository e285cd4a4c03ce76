// Scratch of one attention call, in floats, as a function of its queries and keys alone: what
// planners add to the peak of an attention layer. Every backend allocates exactly this
// (kernels/backend.h), and the tests of models/layers hold the two to the byte.
//
//   Bytes scratch(4 * AttentionGradientWorkspaceFloats(/*queries=*/128, /*keys=*/128));   // 64 KiB
//
// A kernel works on blocks of at most kAttentionQueryRows query rows of one (sample, head) and on
// the keys that they can see, so the scores of a whole head never exist. Whole samples have as many
// queries as keys; a slice's last query sees the keys up to its own. With a window a block's rows
// see that many keys up to their own.
#ifndef PIPELAB_MODELS_GRAPH_ATTENTION_WORKSPACE_H_
#define PIPELAB_MODELS_GRAPH_ATTENTION_WORKSPACE_H_

#include <cstdint>

namespace pipelab {

inline constexpr int64_t kAttentionQueryRows = 64;

// Forward: the scores of one block of query rows.
constexpr int64_t AttentionWorkspaceFloats(int64_t queries, int64_t keys, int64_t window = 0) {
  const int64_t rows = queries < kAttentionQueryRows ? queries : kAttentionQueryRows;
  return rows * (window > 0 && window + rows - 1 < keys ? window + rows - 1 : keys);
}

// Gradient: the probabilities of the block and their gradient.
constexpr int64_t AttentionGradientWorkspaceFloats(int64_t queries, int64_t keys,
                                                   int64_t window = 0) {
  return 2 * AttentionWorkspaceFloats(queries, keys, window);
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_ATTENTION_WORKSPACE_H_
