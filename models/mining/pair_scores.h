// How well each sentence of one list translates each of another, by words and by grams.
//
//   const PairScorer scorer(x_list, y_list, grams, pairs, options);
//   const Neighbours near = scorer.Best();
//   for (const PairSigns& s : scorer.Signs({{x, y}, ...})) ...        // see pair_classifier.h
//
// score(x, y) = the sum over words t of y of log((1 - e) p(t | x) / (e p(t)) + 1), divided by the
// words of y and 8 more, the same the other way, 3 times the cosine of grams, and less 0.3 times
// how far the lengths' logarithms are apart. p(t | x) is IBM model 1's, trained on `pairs` both
// ways (word_table.h), p(t) the word's share of its list as if it were said 3 times more, e = 0.5:
// the logarithm is how much more likely a word is for being a translation, and a word that x does
// not explain costs nothing. (Munteanu and Marcu, "Improving machine translation performance by
// exploiting non-parallel corpora", Computational Linguistics 2005, score by such tables.)
//
// A sentence is never scored by a table that its own pair taught: sentences of x are in 4 parts,
// and those of a part are scored by tables trained on the pairs of the other three.
#ifndef PIPELAB_MODELS_MINING_PAIR_SCORES_H_
#define PIPELAB_MODELS_MINING_PAIR_SCORES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/mining/gram_vectors.h"
#include "models/mining/margin.h"
#include "models/mining/nearest.h"
#include "models/mining/sentence.h"
#include "models/mining/word_table.h"

namespace pipelab {

// One list, as scoring needs it.
struct ScoredList {
  std::vector<WordIds> words;                   // of each sentence; ids of this list alone
  std::vector<double> word_share;               // of each word, of all that the list says
  double word = 0;                              // the share of a word said once
  std::vector<double> length;                   // characters, at least 1
  std::vector<std::vector<std::string>> names;  // as in sentence.h, and so are these:
  std::vector<std::u32string> marks;
};
ScoredList MakeScoredList(const std::vector<Sentence>& sentences);

struct ScoreOptions {
  int neighbours = 16;  // the length of the lists
  int iterations = 5;   // of expectation maximisation
  double unseen = 2;    // as TrainWordTable
  int threads = 1;      // the same bits for any number
};

// What speaks for a pair or against it. A word's information is -log of its share (above), and as
// much of it is explained as the word gains, at most all.
struct PairSigns {
  static constexpr int kCount = 15;
  // Gains of y's words and of x's, as in the score, and their product; the cosine of grams; how far
  // the lengths' logarithms are apart, and its square; the explained share of y's information, of
  // x's, and the lesser of both; log(1 + nats) of y's and x's that are not explained; log(1 +
  // words) of both; log(1 + names that one side alone has), and the same of marks.
  std::array<double, kCount> values;
};

// Lists and grams must outlive it.
class PairScorer {
 public:
  PairScorer(const ScoredList& x, const ScoredList& y, const GramVectors& grams,
             const std::vector<MinedPair>& pairs, const ScoreOptions& options);
  ~PairScorer();

  // All with all: the best of each sentence.
  Neighbours Best() const;
  std::vector<PairSigns> Signs(const std::vector<std::pair<int32_t, int32_t>>& places) const;

 private:
  class Part;
  const ScoredList& x_;
  const ScoredList& y_;
  const GramVectors& grams_;
  const ScoreOptions options_;
  std::vector<double> x_length_, y_length_;  // logarithms, over the mean
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_PAIR_SCORES_H_
