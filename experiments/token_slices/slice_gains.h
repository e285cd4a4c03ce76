// What slices of tokens gain over whole samples in a pipeline: TeraPipe's rows, on paper.
//
//   PIPELAB_ASSIGN_OR_RETURN(const SliceGain g, GainOfSlices(row, cluster, options));
//   g.gain();      // seconds of an iteration without slices over those with them
//
// Both are the best slicing that TeraPipe's dynamic program finds
// (pipelines/planners/token_slicing.h) with the cost model's times of the slowest stage: of whole
// samples, and of a multiple of `token_step` tokens. A layer's tensor-parallel sums are in its
// times, the gradients' sum over the pipelines comes at the end. Messages between stages are not:
// the paper's program has none.
#ifndef PIPELAB_EXPERIMENTS_TOKEN_SLICES_SLICE_GAINS_H_
#define PIPELAB_EXPERIMENTS_TOKEN_SLICES_SLICE_GAINS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/terapipe.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct SliceOptions {
  int64_t token_step = 128;
};

struct SliceGain {
  PublishedTeraPipeRow published;
  double whole_seconds = 0, sliced_seconds = 0;  // of an iteration
  double sum_seconds = 0;                        // of the gradients' sum, in both
  std::string slices;                            // "8 x 1 sample: 512,512,512,512"

  double gain() const { return whole_seconds / sliced_seconds; }
};

absl::StatusOr<SliceGain> GainOfSlices(const PublishedTeraPipeRow& row, const ClusterSpec& cluster,
                                       const SliceOptions& options);

Table SliceTable(const std::vector<SliceGain>& gains);
std::vector<Claim> SliceClaims(const std::vector<SliceGain>& gains);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SLICE_GAINS_H_
