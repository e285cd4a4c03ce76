// Pairs of sentences of two lists that are translations of each other, found without any example.
//
//   PIPELAB_ASSIGN_OR_RETURN(const Mining mining, Mine(english, german));
//   for (const MinedPair& p : mining.pairs) english[p.x], german[p.y];
//
// The first pairs are those whose character grams agree most (gram_vectors.h, ratio margin 1.06 as
// in Tran et al., "Cross-lingual retrieval for iterative self-supervised training", NeurIPS 2020),
// of sentences of 5 words and more.
//
// Each iteration learns word tables from what the two before found, scores all sentences with all
// (pair_scores.h), scores the best again by several signs (pair_classifier.h), and takes the pairs
// that choose each other (margin.h). What is kept has a margin from which an estimate, made without
// truth, promises the wanted precision (threshold.h). An iteration that does not find 2 % more
// right pairs, as estimated, keeps what one before mined; one where no margin even reaches the
// precision of teachers takes it back. Two iterations without growth are the last. Where nothing is
// mined then, what most likely reaches the precision of teachers is, and `threshold` says which
// precision.
//
// Where no sentence has a partner, tables learn what some sentences say by chance, and each pair
// then confirms the others. So what is mined is tested: all is learned again, while every fifth
// sentence of x teaches nothing. By what is true these are found as often as the others, by chance
// they are not. Unless they are mined at least 0.75 times as often, nothing is mined.
//
// Tables learn from pairs of a softer precision. Where no margin reaches that, they learn from
// those that are within 0.02 of the best estimate. Where the best is below 0.3, they learn from the
// best by margin, 1.3 times as many as before: first tables are poor and find better pairs.
//
// The same sentences give the same bits, for any number of threads. Errors: InvalidArgument for
// text that is not UTF-8.
#ifndef PIPELAB_MODELS_MINING_MINE_H_
#define PIPELAB_MODELS_MINING_MINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/mining/margin.h"
#include "models/mining/nearest.h"
#include "models/mining/threshold.h"

namespace pipelab {

struct MineOptions {
  double precision = 0.87;  // wanted of what is kept
  double teaching = 0.80;   // wanted of what tables are learned from
  int k = 4;                // others that a margin compares with
  int most_iterations = 14;
  double settled = 0.02;  // it ends where the right pairs grow by less than this share
  int threads = 1;
};

struct MineIteration {
  std::vector<MinedPair> mutual;  // whatever their margin
  std::vector<MinedPair> pairs;   // what is mined after it
  Threshold threshold;
};

struct Mining {
  std::vector<MinedPair> pairs;        // the last iteration's, sorted by x
  std::vector<MinedPair> grams_alone;  // what grams find without learning: every mutual pair
  std::vector<MineIteration> iterations;
  // How often sentences that taught nothing are mined, over how often the others are (see above); 0
  // where there was nothing to test.
  double held_out = 0;
  // With the scores of the last iteration; empty where there was none.
  Neighbours candidates = {0, 0, 1};
};

absl::StatusOr<Mining> Mine(const std::vector<std::string>& x, const std::vector<std::string>& y,
                            const MineOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_MINE_H_
