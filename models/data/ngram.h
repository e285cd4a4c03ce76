// N-gram models of text: what a language model's loss must beat to have learned something.
//
//   NGramModel bigrams(data.train->tokens(), data.vocabulary.size(), /*order=*/2);
//   double nats = bigrams.Loss(data.held_out->tokens());     // mean, per token
//
// Order 1 counts tokens alone, order n looks at the n - 1 before. Counts are smoothed by Witten and
// Bell's rule
// ("The zero-frequency problem", IEEE Trans. Information Theory 37(4), 1991): a context seen c
// times with t different successors gives c/(c+t) to its counts and t/(c+t) to the next shorter
// context.
#ifndef PIPELAB_MODELS_DATA_NGRAM_H_
#define PIPELAB_MODELS_DATA_NGRAM_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace pipelab {

class NGramModel {
 public:
  static constexpr int kMaxOrder = 7;

  // `order` from 1 to kMaxOrder; tokens below `vocabulary` (checked).
  NGramModel(absl::Span<const uint8_t> tokens, int64_t vocabulary, int order);

  // The probability of `next` after `before` (its last order - 1 tokens count). Sums to 1 over the
  // vocabulary.
  double Probability(absl::Span<const uint8_t> before, uint8_t next) const;

  // Mean of -log(probability) over the tokens, in nats; the first ones have less before them.
  double Loss(absl::Span<const uint8_t> tokens) const;
  // Over the tokens [begin, end) alone, which are there (checked); those before are context.
  double Loss(absl::Span<const uint8_t> tokens, int64_t begin, int64_t end) const;

 private:
  struct Context {
    uint32_t count = 0;     // tokens that followed
    uint32_t distinct = 0;  // different ones
  };
  const int order_;
  const double uniform_;
  absl::flat_hash_map<uint64_t, Context> contexts_;  // keys: see ngram.cc
  absl::flat_hash_map<uint64_t, uint32_t> grams_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_NGRAM_H_
