// Results of other planners on their own inputs, and the same inputs as problems of ours.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<ReferenceRow> rows, ReadReferenceRows(folder));
//   PIPELAB_ASSIGN_OR_RETURN(PlanProblem problem, ProblemOf(rows[3], folder));
//   MakePlan(rows[3].planner, problem, {});
//
// The folder has reference_results.csv and the files that it names (not part of the project; see
// docs/development.md). A row: peer, input, config, objective, unit, stages, wall_s, ...
// Errors: InvalidArgument, one line with file, line and reason.
#ifndef PIPELAB_EXPERIMENTS_PLANNING_REFERENCE_ROWS_H_
#define PIPELAB_EXPERIMENTS_PLANNING_REFERENCE_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct ReferenceRow {
  int line = 0;
  std::string peer, input, config;   // as the file has them
  std::string planner;               // of ours
  absl::optional<double> objective;  // none: it failed, or proved that there is no plan
  bool infeasible = false;
  absl::optional<double> seconds;

  std::string Name() const { return input + " [" + config + "]"; }
};

absl::StatusOr<std::vector<ReferenceRow>> ReadReferenceRows(absl::string_view folder);

// With the machine that the row's config says: "k=8 mem=8GiB mbs=1920 bw=25GiB/s" or
// "-n 4 4 -b 1e10 1e9"; what it does not say is the file's.
absl::StatusOr<PlanProblem> ProblemOf(const ReferenceRow& row, absl::string_view folder);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLANNING_REFERENCE_ROWS_H_
