// What slices of tokens gain over whole samples in a pipeline: TeraPipe's rows, simulated.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<SliceGain> gains, GainsOfSlices(row, cluster, {4, 8,
//   16})); gains[0].gain();      // seconds of an iteration without slices over those with them
//
// Every second is PredictStep's: messages, gradients' sums and the optimizer's step included.
// Without slices the scheme is gpipe, with them terapipe, of slices of equal length; each takes the
// micro-batch size, a power of two, and the number of slices that are fastest on the cluster.
// Activations are recomputed where a row does not fit otherwise.
//
// Where the replicas of a row stand is a choice (RankOrder): a row with replicas has a gain for
// each.
#ifndef PIPELAB_EXPERIMENTS_TOKEN_SLICES_SLICE_GAINS_H_
#define PIPELAB_EXPERIMENTS_TOKEN_SLICES_SLICE_GAINS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/terapipe.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

// An iteration.
struct SlicedStep {
  StepConfig config;
  double seconds = 0;
  // The paper's least time of these slices: sum t_i + (K - 1) max t_j over the slowest stage's
  // forwards and backwards, without messages and sums.
  double formula_seconds = 0;
  Bytes memory;  // of the fullest device
  bool fits = true;
};

struct SliceGain {
  PublishedTeraPipeRow published;
  SlicedStep whole, sliced;

  double gain() const { return whole.seconds / sliced.seconds; }
};

// One gain for each order of ranks that differs, the fastest first. InvalidArgument naming
// --cluster or --slices where the row cannot run.
absl::StatusOr<std::vector<SliceGain>> GainsOfSlices(const PublishedTeraPipeRow& row,
                                                     const ClusterSpec& cluster,
                                                     const std::vector<int>& slices);

Table SliceTable(const std::vector<SliceGain>& gains);

// On a cluster whose outermost level has so much bandwidth, ascending.
struct NetworkCase {
  double gigabits = 0;  // a second
  std::vector<SliceGain> gains;
};
ClusterSpec WithSlowerNetwork(ClusterSpec cluster, double share);

// What the seconds owe to the network between nodes.
Table NetworkTable(const std::vector<NetworkCase>& cases);

// The claims on each row without slices and with them, each in its faster order of ranks.
std::vector<Claim> SliceClaims(const std::vector<SliceGain>& gains,
                               const std::vector<NetworkCase>& cases);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SLICE_GAINS_H_
