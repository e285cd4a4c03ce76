// What makes breadth-first faster than depth-first at a small batch: from one best configuration to
// the other, one difference at a time.
//
//   for (const std::string& note : HeadlineNotes(sweep, batches)) report.AddNote(note);
//   PIPELAB_ASSIGN_OR_RETURN(Table t, AblationTable(model, sweep, /*batch=*/8));
#ifndef PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_
#define PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/grids/batch_sweep.h"
#include "experiments/report/table.h"

namespace pipelab {

// Throughput of breadth-first over depth-first at the smallest batch of all, beside the published
// headline; and where orderings of the paper are not met.
std::vector<std::string> HeadlineNotes(const BatchSweep& sweep,
                                       const std::vector<int64_t>& batches);

absl::StatusOr<Table> AblationTable(const GridModel& model, const BatchSweep& sweep, int64_t batch);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_
