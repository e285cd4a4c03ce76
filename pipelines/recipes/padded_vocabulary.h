// The rows of Megatron-LM's vocabulary, of which each tensor-parallel device has a multiple.
//
//   PaddedVocabulary(/*words=*/50257, /*tensor=*/8)   // 51200
#ifndef PIPELAB_PIPELINES_RECIPES_PADDED_VOCABULARY_H_
#define PIPELAB_PIPELINES_RECIPES_PADDED_VOCABULARY_H_

#include <cstdint>

namespace pipelab {

// The default of --make-vocab-size-divisible-by.
inline constexpr int64_t kVocabularyMultiple = 128;

inline int64_t PaddedVocabulary(int64_t words, int64_t tensor,
                                int64_t multiple = kVocabularyMultiple) {
  const int64_t unit = multiple * tensor;
  return (words + unit - 1) / unit * unit;
}

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_PADDED_VOCABULARY_H_
