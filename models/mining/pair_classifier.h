// Candidates scored anew by how likely they are right, from several signs at once: logistic
// regression learned from what was mined (Munteanu and Marcu, "Improving machine translation
// performance by exploiting non-parallel corpora", Computational Linguistics 2005).
//
//   const Neighbours scored = ClassifyPairs(scorer, near, right);
//   MutualPairs(scored, MarginKind::kHalf, 4);
//
// `right` are pairs of `near` that are taken to be right. What else `near` pairs their sentences
// with is wrong. A score is the log odds of being right. Signs are in units of their deviation;
// weights have a normal prior of deviation 1 (the constant has none). Ten Newton steps give the
// same bits each time. Lists are as long as those of `near`; without a right pair they are `near`.
#ifndef PIPELAB_MODELS_MINING_PAIR_CLASSIFIER_H_
#define PIPELAB_MODELS_MINING_PAIR_CLASSIFIER_H_

#include <vector>

#include "models/mining/margin.h"
#include "models/mining/nearest.h"
#include "models/mining/pair_scores.h"

namespace pipelab {

Neighbours ClassifyPairs(const PairScorer& scorer, const Neighbours& near,
                         const std::vector<MinedPair>& right);

// The weights of a constant and of each sign, for rows of signs and which of them are right.
std::vector<double> FitLogistic(const std::vector<PairSigns>& rows, const std::vector<bool>& right);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_PAIR_CLASSIFIER_H_
