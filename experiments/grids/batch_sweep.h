// The best configuration of each method at each batch: what Breadth-First Pipeline Parallelism
// (Lamy-Poirier, MLSys 2023) compares, from the search over grids.
//
//   BatchSweepOptions options;
//   options.devices = 64;  options.batches = {8, 16, 32};  options.methods = PublishedMethods();
//   PIPELAB_ASSIGN_OR_RETURN(BatchSweep sweep, SweepBatches(model, options));
//   report.AddTable(BatchSweepTable("methods", caption, sweep));
#ifndef PIPELAB_EXPERIMENTS_GRIDS_BATCH_SWEEP_H_
#define PIPELAB_EXPERIMENTS_GRIDS_BATCH_SWEEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/report/chart_svg.h"
#include "experiments/report/table.h"
#include "pipelines/search/breakdown.h"
#include "pipelines/search/search.h"

namespace pipelab {

struct BatchSweepOptions {
  int64_t devices = 64;
  std::vector<int64_t> batches;
  std::vector<SearchMethod> methods;
  std::vector<Recompute> recompute = {Recompute::kNone,
                                      Recompute::kFull};  // what the search may choose from
};

// The best of one method at one batch.
struct SweepCell {
  std::string method;
  int64_t batch = 0;
  absl::optional<RankedStep> best;
  StepBreakdown breakdown;  // of best
  std::string missing;      // why there is none
};

struct BatchSweep {
  int64_t devices = 0;
  std::vector<SweepCell> cells;  // by batch, then method
  int64_t considered = 0, simulated = 0;

  // Null where the method has no result at the batch.
  const RankedStep* Find(const std::string& method, int64_t batch) const;
};

absl::StatusOr<BatchSweep> SweepBatches(const StepModel& model, const BatchSweepOptions& options);

Table BatchSweepTable(std::string id, std::string caption, const BatchSweep& sweep);
// Tflop/s per device over the batch in samples: a line a method.
std::vector<Series> BatchSweepSeries(const BatchSweep& sweep);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRIDS_BATCH_SWEEP_H_
