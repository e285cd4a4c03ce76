// Table 3 of the vocabulary parallelism paper: what parts of embedding and head, which P devices
// run beside each other, take of the time of the whole layers over P. Published beside simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto cells, SimulateScaling(paper, cluster));
//   cells[0].simulated;     // %, published: 91.29 for Vocab-1's head on 8 GPUs
#ifndef PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_SCALING_H_
#define PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_SCALING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/vocabulary.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct ScalingCell {
  std::string layer;  // "head, Vocab-1", "head, Vocab-2", "embedding"
  int64_t tokens = 0;
  int devices = 0;
  double published = 0, simulated = 0;  // % of linear
};

// 256000 words. The whole layers are the ends of 1F1B's chain, less what is between.
absl::StatusOr<std::vector<ScalingCell>> SimulateScaling(const VocabularyPaper& paper,
                                                         const ClusterSpec& cluster);
Table ScalingTable(const std::vector<ScalingCell>& cells);
std::vector<Claim> ScalingClaims(const std::vector<ScalingCell>& cells);

// Appendix B.2: the synchronous all-reduces of an interlaced pipeline were taken out. Here its
// broadcasts are, too, which nothing hides either. % of the step of the paper's model for 32 GPUs.
absl::StatusOr<double> SimulateInterlacedExchange(const VocabularyPaper& paper,
                                                  const ClusterSpec& cluster);
Claim InterlacedExchangeClaim(double percent);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VOCABULARY_VOCABULARY_SCALING_H_
