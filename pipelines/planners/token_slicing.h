// TeraPipe's slicing (Li et al., ICML 2021): a batch is cut into micro-batches of some samples, and
// each of these into slices of its tokens, which go through K stages one after the other. The batch
// takes
//
//   sum of all slices' times + (K - 1) x the longest of them.
//
//   TokenSlicing best = SliceBatch(problem, deadline);
//   best.micro_batches[0].lengths;       // in units of tokens
//
// Exact: for a bound on the longest slice, the least sum is a dynamic program over a sample's
// tokens for each size of micro-batch, and one over the batch's samples. Bounds are all times there
// are, as many as can still be better.
#ifndef PIPELAB_PIPELINES_PLANNERS_TOKEN_SLICING_H_
#define PIPELAB_PIPELINES_PLANNERS_TOKEN_SLICING_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace pipelab {

// [units of the slice - 1][units of its sample before it]
using SliceTimes = std::vector<std::vector<double>>;

struct SlicingProblem {
  int64_t batch_samples = 1;
  int64_t stages = 1;
  int units = 1;                  // of a sample
  std::vector<int64_t> sizes;     // samples of a micro-batch, ascending
  std::vector<SliceTimes> times;  // [size], of the slowest stage
};

struct SlicedMicroBatch {
  int64_t micro_batch_size = 0;
  std::vector<int> lengths;  // in units, in the order of the tokens
};

struct TokenSlicing {
  std::vector<SlicedMicroBatch> micro_batches;  // empty: the sizes do not make the batch
  double time = 0;
  bool complete = true;  // false: the deadline came first
};

TokenSlicing SliceBatch(const SlicingProblem& problem, absl::Time deadline);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_TOKEN_SLICING_H_
