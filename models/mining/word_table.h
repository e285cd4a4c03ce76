// How likely a word is the translation of another one: IBM model 1, learned by expectation
// maximisation from pairs of sentences (Brown et al., "The mathematics of statistical machine
// translation", Computational Linguistics 1993).
//
//   const WordTable table = TrainWordTable(pairs, source_words, /*iterations=*/5);
//   for (const WordProbability& p : table.Of(word)) ...           // p.word, p.probability
//
// A target word comes from one word of the source sentence or from a null word, each equally
// likely: p(t | s) = (t(t | null) + sum over words v of s of t(t | v)) / (length of s + 1). Words
// are ids from 0; a sentence has a word as often as it says it. The likelihood never falls from one
// iteration to the next.
//
// Rare words explain whatever no other word of a sentence explains (Moore, "Improving IBM
// word-alignment model 1", ACL 2004). So each source word counts as said `unseen` times more, with
// a translation that no sentence has. Then it is the likelihood with these that never falls.
#ifndef PIPELAB_MODELS_MINING_WORD_TABLE_H_
#define PIPELAB_MODELS_MINING_WORD_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace pipelab {

using WordIds = std::vector<int32_t>;

struct WordPair {
  const WordIds* source;
  const WordIds* target;
};

struct WordProbability {
  int32_t word;
  float probability;
};

class WordTable {
 public:
  // Translations of a word by ascending id; empty for one that no pair has. Those less likely than
  // 0.001 are left out.
  absl::Span<const WordProbability> Of(int32_t source_word) const;

  // For each iteration: the mean log likelihood of a target word under the table before it (nats).
  const std::vector<double>& log_likelihoods() const { return log_likelihoods_; }

 private:
  friend WordTable TrainWordTable(const std::vector<WordPair>&, int32_t, int, double);
  std::vector<std::vector<WordProbability>> translations_;
  std::vector<double> log_likelihoods_;
};

// Source words are in [0, source_words) (CHECKed).
WordTable TrainWordTable(const std::vector<WordPair>& pairs, int32_t source_words, int iterations,
                         double unseen = 0);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_WORD_TABLE_H_
