// What makes breadth-first faster than depth-first at a small batch: from one best configuration to
// the other, one difference at a time, and each without one of its parts.
//
//   for (Claim& claim : OrderingClaims(sweep, batches)) report.AddClaim(std::move(claim));
//   for (const std::string& note : HeadlineNotes(sweep, batches)) report.AddNote(note);
//   PIPELAB_ASSIGN_OR_RETURN(Table t, AblationTable(model, sweep, /*batch=*/8));
#ifndef PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_
#define PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/grids/batch_sweep.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

// The paper's orderings. `batches` ascend. Its headline is megatron_losses.h's.
std::vector<Claim> OrderingClaims(const BatchSweep& sweep, const std::vector<int64_t>& batches);

// What else there is to say of the headline: over a depth-first that sends whole messages, and at
// the batch where the gain is largest.
std::vector<std::string> HeadlineNotes(const BatchSweep& sweep,
                                       const std::vector<int64_t>& batches);

// Sentences, one for each method and batch below one sample a device where it is faster than
// `method`.
std::vector<std::string> FasterThan(const BatchSweep& sweep, const std::string& method,
                                    const std::vector<int64_t>& batches);

// What each of the two bests is without one of its parts, and the way between them.
absl::StatusOr<Table> AblationTable(const StepModel& model, const BatchSweep& sweep, int64_t batch);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRIDS_ABLATION_H_
