// Sentences as vectors of what two languages share without any knowledge of either: names, numbers
// and loan words, as character 3- and 4-grams and words of digits, weighted by tf-idf.
//
//   const GramVectors v = MakeGramVectors(x_sentences, y_sentences);
//   const Tensor x_MD = DenseRows(v.x, kGramDims, &arena);      // for NearestNeighbours
//
// Grams are hashed into kGramDims columns with a sign (Weinberger et al., "Feature hashing for
// large scale multitask learning", ICML 2009), so that collisions cancel on average. Rows have
// length 1 with the grams that one list alone has; those are left out.
#ifndef PIPELAB_MODELS_MINING_GRAM_VECTORS_H_
#define PIPELAB_MODELS_MINING_GRAM_VECTORS_H_

#include <cstdint>
#include <vector>

#include "kernels/tensor/arena.h"
#include "kernels/tensor/tensor.h"
#include "models/mining/sentence.h"
#include "models/mining/sparse_rows.h"

namespace pipelab {

inline constexpr int32_t kGramDims = 4096;

struct GramVectors {
  std::vector<SparseRow> x, y;
};

// The weight of a gram is (1 + log count) log(N / sentences that have it), over both lists.
GramVectors MakeGramVectors(const std::vector<Sentence>& x, const std::vector<Sentence>& y);

// float32 [rows, columns].
Tensor DenseRows(const std::vector<SparseRow>& rows, int32_t columns, Arena* arena);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_GRAM_VECTORS_H_
