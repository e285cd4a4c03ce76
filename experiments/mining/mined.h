// A pool that was mined, with its truth for the judge.
//
//   PIPELAB_ASSIGN_OR_RETURN(const Mined mined, MineTask("fr", "manual", MakeMiningTask(text, {}),
//                                                        MineOptions()));
//   mined.Last().f1();
#ifndef PIPELAB_EXPERIMENTS_MINING_MINED_H_
#define PIPELAB_EXPERIMENTS_MINING_MINED_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/mining/judge.h"
#include "models/data/mining_pool.h"
#include "models/mining/mine.h"

namespace pipelab {

struct Mined {
  std::string language, pool;  // "fr", "manual"
  MiningTask task;
  Mining mining;

  std::vector<MiningScore> Scores() const;  // of each iteration
  MiningScore Last() const { return Judge(mining.pairs, task.truth); }
};

// Mines what the task's pool has; the truth is kept for the judge. Errors: those of Mine.
absl::StatusOr<Mined> MineTask(const std::string& language, const std::string& pool,
                               MiningTask task, const MineOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MINING_MINED_H_
