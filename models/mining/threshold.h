// The margin from which mined pairs are kept, chosen without knowing a true pair.
//
//   const auto estimates = EstimatePrecision(near, pairs, MarginKind::kHalf, /*k=*/4);
//   const Threshold t = ChooseThreshold(estimates, /*precision=*/0.9);
//   if (t.found) kept = AtLeast(pairs, t.margin);
//
// Sentences whose partners are taken away have no right partner any more, so each pair that they
// are mined with is wrong. Every pair loses its partner once, a fifth of all at a time. Of the
// pairs at t, the share whose orphan is mined at t too estimates how often a sentence without a
// partner is mined there; with the number of sentences that no pair at t has, it gives the wrong
// pairs at t, and so the precision. Pairs below t do not count: they are mostly wrong already, and
// what is left to their orphans is a second choice among wrong ones, which is below t as well.
//
// Sentences that have others like them are mined with a wrong one more often, and a pool's noise
// may have fewer of these than what is mined. So the share is taken by strata of equal size, by the
// mean score of a sentence's k best that are not its partner, and each stratum's share is of the
// sentences there (post-stratification; Holt and Smith, JRSS A 1979). Shares rise with that
// mean; strata in which they do not are taken together. The whole is taken at the upper end of a
// confidence interval (Wilson, "Probable inference, the law of succession, and statistical
// inference", 1927; `errors` standard errors), so that a few orphans prove nothing.
#ifndef PIPELAB_MODELS_MINING_THRESHOLD_H_
#define PIPELAB_MODELS_MINING_THRESHOLD_H_

#include <cstdint>
#include <vector>

#include "models/mining/margin.h"
#include "models/mining/nearest.h"

namespace pipelab {

struct Threshold {
  bool found = false;    // whether it may be chosen: at least 10 pairs, and one in 10 sentences
  float margin = 0;      // of the last of the pairs
  double precision = 0;  // as estimated
  int64_t pairs = 0;     // with that margin or more
};

// By pair, the margin up to which both it and its orphan are mined; minus infinity where the orphan
// is not.
std::vector<float> OrphanMargins(const Neighbours& near, const std::vector<MinedPair>& pairs,
                                 MarginKind kind, int k);

// The estimate for each number of pairs from 1, those with the highest margins. `pairs` are
// MutualPairs(near, kind, k). A few pairs prove little and may not be chosen; a tenth of the
// sentences of the shorter list may.
std::vector<Threshold> EstimatePrecision(const Neighbours& near,
                                         const std::vector<MinedPair>& pairs, MarginKind kind,
                                         int k, double errors = 1);

// The last one that reaches the precision; not found where none does.
Threshold ChooseThreshold(const std::vector<Threshold>& estimates, double precision);

// The highest precision that may be chosen; 0 where there is none.
double BestPrecision(const std::vector<Threshold>& estimates);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_THRESHOLD_H_
