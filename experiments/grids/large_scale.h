// Beyond a paper's cluster: time and cost of training on more devices, with the batch that the
// training tolerates.
//
//   PIPELAB_ASSIGN_OR_RETURN(Table t, LargeScaleTable(model, options));
//
// Training at batch B takes S (1 + B_crit / B) steps, where S is the number that very large batches
// need and B_crit the critical batch (McCandlish et al., "An Empirical Model of Large-Batch
// Training", 2018): below it devices are used well, above it steps are. Both are inputs.
#ifndef PIPELAB_EXPERIMENTS_GRIDS_LARGE_SCALE_H_
#define PIPELAB_EXPERIMENTS_GRIDS_LARGE_SCALE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/table.h"
#include "pipelines/search/search.h"

namespace pipelab {

struct LargeScaleOptions {
  std::vector<int64_t> devices;
  std::vector<int64_t> batches;
  std::vector<SearchMethod> methods;
  std::vector<Recompute> recompute = {Recompute::kNone, Recompute::kFull};
  double critical_batch = 0;  // samples
  double least_steps = 0;
};

// A row for each number of devices and method: the batch at which training ends first.
absl::StatusOr<Table> LargeScaleTable(const StepModel& model, const LargeScaleOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRIDS_LARGE_SCALE_H_
