// Measured steps beside predicted ones: what every set of rows has in common, once the set's reader
// says which step a row is. A set is its reader, a call for each row, a table and a claim.
//
//   PIPELAB_ASSIGN_OR_RETURN(RowStep s, PredictRow("gpt 8x1x1", 0.297, RangeOf(cluster), step));
//   report.AddTable(RowTable("libai", "LiBai's steps on V100s", steps));
//   report.AddClaim(MedianClaim(OwnClaim("libai.time", "..."), steps, 0.08, "why it is missed"));
//
// Times are in seconds, memory in GiB (2^30 bytes) of the fullest device. Errors are those of the
// prediction.
#ifndef PIPELAB_EXPERIMENTS_MODERN_ROW_STEPS_H_
#define PIPELAB_EXPERIMENTS_MODERN_ROW_STEPS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct RowStep {
  std::string name;
  double measured = 0, seconds = 0;
  double least = 0, most = 0;  // predicted at the ends of the machine's range
  absl::optional<double> measured_gib;
  double gib = 0;

  double error() const { return seconds / measured - 1; }
  double memory_error() const { return gib / *measured_gib - 1; }
  bool in_range() const { return least <= measured && measured <= most; }
};

// A machine, and the same at the ends of what is not known of it.
struct MachineRange {
  ClusterSpec cluster, best, worst;
};
// By what efficiencies reach (EfficiencyRangeOf).
MachineRange RangeOf(const ClusterSpec& cluster);

using StepOn = absl::FunctionRef<absl::StatusOr<StepPrediction>(const ClusterSpec&)>;
absl::StatusOr<RowStep> PredictRow(std::string name, double measured, const MachineRange& machine,
                                   StepOn step);

// With columns of memory where rows have it.
Table RowTable(const std::string& id, const std::string& title, const std::vector<RowStep>& steps);

// Met where the median of the errors is at most `bar`, a share; not made without steps.
Claim MedianClaim(Claim claim, const std::vector<RowStep>& steps, double bar,
                  const std::string& reason);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_ROW_STEPS_H_
