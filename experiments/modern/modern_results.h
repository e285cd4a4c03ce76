// What comes of the rows (modern_rows.h): each predicted beside measured, or why not; tables by
// source, machine, model and axis; claims.
//
//   const std::vector<ModernResult> all = PredictAll(rows, models, machines);
//   report.AddTable(CoverageTable(all));  report.AddTable(ErrorTable(all));
//   for (Claim& claim : ModernClaims(all)) report.AddClaim(std::move(claim));
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_RESULTS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_RESULTS_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct ModernResult {
  const ModernRow* row = nullptr;
  std::string why_not;       // empty: predicted
  bool calibrating = false;  // counted nowhere
  double factor = 1;         // what the efficiencies of its machine are times, by calibration
  double seconds = 0;        // of a step
  Bytes memory, device_memory;
  // What the nearest row of the same source and another model took, scaled by the flops of a GPU;
  // none where there is no other model.
  absl::optional<double> nearest_seconds;

  bool judged() const { return why_not.empty() && !calibrating; }
};

// The rows must outlive the results.
std::vector<ModernResult> PredictAll(const std::vector<ModernRow>& rows,
                                     const std::vector<ModernModel>& models,
                                     const ModernMachines& machines);

Table CoverageTable(const std::vector<ModernResult>& all);  // rows by source, and why not
Table ErrorTable(const std::vector<ModernResult>& all);     // of a step's time
Table MemoryTable(const std::vector<ModernResult>& all);    // of rows that printed a peak
std::vector<Claim> ModernClaims(const std::vector<ModernResult>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_RESULTS_H_
