// What makes breadth-first faster than depth-first at a small batch: from one best configuration to
// the other, one difference at a time, and each without one of its parts.
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
// headline, and at the one where it is largest; and where orderings of the paper are not met.
// `batches` ascend.
std::vector<std::string> HeadlineNotes(const BatchSweep& sweep,
                                       const std::vector<int64_t>& batches);

// Sentences, one for each method and batch below one sample a device where it is faster than
// `method`.
std::vector<std::string> FasterThan(const BatchSweep& sweep, const std::string& method,
                                    const std::vector<int64_t>& batches);

// What each of the two bests is without one of its parts, and the way between them.
absl::StatusOr<Table> AblationTable(const GridModel& model, const BatchSweep& sweep, int64_t batch);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_
