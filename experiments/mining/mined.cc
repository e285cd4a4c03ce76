#include "experiments/mining/mined.h"

#include <iostream>
#include <utility>

#include "tools/base/status_macros.h"

namespace pipelab {

std::vector<MiningScore> Mined::Scores() const {
  std::vector<MiningScore> scores;
  for (const MineIteration& i : mining.iterations) scores.push_back(Judge(i.pairs, task.truth));
  return scores;
}

absl::StatusOr<Mined> MineTask(const std::string& language, const std::string& pool,
                               MiningTask task, const MineOptions& options) {
  std::cerr << language << ", " << pool << std::endl;
  Mined mined;
  mined.language = language;
  mined.pool = pool;
  mined.task = std::move(task);
  PIPELAB_ASSIGN_OR_RETURN(mined.mining,
                           Mine(mined.task.pool.source, mined.task.pool.target, options));
  return mined;
}

}  // namespace pipelab
