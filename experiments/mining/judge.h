// Mined pairs beside the true ones: the only reader of the truth.
//
//   const MiningScore v = Judge(mining.pairs, truth);
//   v.f1();
#ifndef PIPELAB_EXPERIMENTS_MINING_JUDGE_H_
#define PIPELAB_EXPERIMENTS_MINING_JUDGE_H_

#include <vector>

#include "models/data/mining_pool.h"
#include "models/mining/margin.h"

namespace pipelab {

struct MiningScore {
  double right = 0, mined = 0, of = 0;  // pairs

  double precision() const { return mined == 0 ? 0 : right / mined; }
  double recall() const { return of == 0 ? 0 : right / of; }
  double f1() const { return mined + of == 0 ? 0 : 2 * right / (mined + of); }
};

MiningScore Judge(const std::vector<MinedPair>& pairs, const MiningTruth& truth);

// The score of the threshold with the highest F1: it is chosen with the truth, so no method may use
// it. It favours a baseline.
MiningScore BestScore(const std::vector<MinedPair>& pairs, const MiningTruth& truth);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MINING_JUDGE_H_
