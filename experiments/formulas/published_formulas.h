// Formulas that papers print for schedules, beside simulated ones: bubbles, activations, weights,
// over a grid of devices and micro-batches; orders and places. And those for a GPT's parameters and
// flops, beside the model's graph.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<FormulaGroup> groups, ScheduleFormulas());
//   for (const FormulaGroup& g : groups) report.AddClaim(ClaimOf(g));
//   report.AddTable(FormulaTable(groups));
//
// Stages take equal times and messages none. What is published is evaluated as printed, what is
// ours is counted in a simulated step: neither knows of the other.
#ifndef PIPELAB_EXPERIMENTS_FORMULAS_PUBLISHED_FORMULAS_H_
#define PIPELAB_EXPERIMENTS_FORMULAS_PUBLISHED_FORMULAS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct FormulaCell {
  std::string scheme, sizes;  // "1f1b", "P=4 M=8"
  double low = 0, high = 0;   // published; equal for one value
  double ours = 0;

  // As a share of what is published, or ours less it; of a range, to its nearest end.
  double error(bool difference = false) const;
};

struct FormulaGroup {
  std::string id;    // of the claim: "formulas.gpipe_bubble"
  std::string text;  // with the formula
  std::string source, tag;
  std::string unit;
  bool differences = false;  // cells are shares: errors are differences, and not shares of them
  double limit = 0;          // of the error
  std::string reason;        // where it is missed
  std::vector<FormulaCell> cells;
};

absl::StatusOr<std::vector<FormulaGroup>> ScheduleFormulas();
absl::StatusOr<std::vector<FormulaGroup>> OrderFormulas();
absl::StatusOr<std::vector<FormulaGroup>> ModelFormulas();
absl::StatusOr<std::vector<FormulaGroup>> BubbleRates();

Claim ClaimOf(const FormulaGroup& group);
Table FormulaTable(const std::vector<FormulaGroup>& groups);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FORMULAS_PUBLISHED_FORMULAS_H_
