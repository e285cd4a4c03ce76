// A vocabulary divided by words: parts of an embedding, parts of an output layer, and the loss that
// puts the latter together (Yeung et al., "Balancing pipeline parallelism with vocabulary
// parallelism", MLSys 2025, arXiv 2411.05288). What they cost; vocabulary_embedding.cc,
// vocabulary_shard.cc and vocabulary_loss.cc run them.
//
//   zoo/vocabulary_shards.h makes them of a language model.
//
// An embedding's part has zeros for tokens of other parts, so that the sum over parts is the whole.
//
// An output's part gives two numbers a row: the logarithm of its sum of exponentials, and the
// target's logit, 0 where the target is another part's. Both are plain functions of the part's
// logits, so the gradient of the loss goes back through them: the softmax of the part times its
// share of all exponentials, less the one-hot target. The logits stay for the backward.
//
// With a local gradient (Vocab-2) the part also gives what the input's gradient needs of it before
// anything is known of the other parts: softmax times table, and the target's row of the table. The
// loss then makes the input's gradient, and the part's backward is that of its table alone.
#ifndef PIPELAB_MODELS_SPECS_VOCABULARY_PARTS_H_
#define PIPELAB_MODELS_SPECS_VOCABULARY_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kVocabularyEmbedding[] = "vocabulary_embedding";
inline constexpr char kVocabularyShard[] = "vocabulary_shard";
inline constexpr char kVocabularyLoss[] = "vocabulary_loss";

// Columns of a part's output; with a local gradient hidden more each of the last two.
struct VocabularyColumn {
  enum { kLse, kTargetLogit, kLocal };
};

// Words [first, first + words) of `vocabulary`.
struct VocabularyPart {
  int64_t vocabulary = 0, first = 0, words = 0;
};

struct VocabularyEmbeddingSizes {
  std::string name;
  int64_t tokens = 0, hidden = 0;
  VocabularyPart part;
  bool positions = false;  // a table of them that learns: one part has it
  double stddev = 0.02;
  std::string tie;  // of the part's table; empty: not tied
};
LayerSpec VocabularyEmbeddingSpec(const VocabularyEmbeddingSizes& sizes);

struct VocabularyShardSizes {
  std::string name;
  int input = 0;  // index of the layer before
  int64_t tokens = 0, hidden = 0;
  VocabularyPart part;
  bool padded_targets = false;
  bool local_gradient = false;
  double stddev = 0.02;
  std::string tie;
};
LayerSpec VocabularyShardSpec(const VocabularyShardSizes& sizes);

struct VocabularyLossSizes {
  std::string name;
  std::vector<int> parts;  // layers
  int64_t tokens = 0, vocabulary = 0;
  bool padded_targets = false;
  // With local gradients: the parts' input, which gets its gradient here, and its width.
  bool local_gradient = false;
  int input = 0;
  int64_t hidden = 0;
};
LayerSpec VocabularyLossSpec(const VocabularyLossSizes& sizes);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_VOCABULARY_PARTS_H_
