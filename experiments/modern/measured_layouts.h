// The runs whose layouts are compared (layout_groups.h): the judged rows of modern models, and
// GPTs that vTrain's authors measured on the A100s of a node (predict/measured_rows.h).
//
//   std::vector<MeasuredLayout> runs = ModernLayouts(data, machines, all);
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<MeasuredLayout> more, NodeLayouts(folder));
#ifndef PIPELAB_EXPERIMENTS_MODERN_MEASURED_LAYOUTS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MEASURED_LAYOUTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/modern/layout_groups.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_results.h"

namespace pipelab {

// Two rows of one predicted configuration are runs of one layout, whatever their releases. All
// must outlive the result.
std::vector<MeasuredLayout> ModernLayouts(const ModernData& data, const ModernMachines& machines,
                                          const ModernResults& all);

// a100_gpt_iteration_times.csv of the folder on `dgx-a100`, without the rows that calibrated it;
// none where the folder has no such file.
absl::StatusOr<std::vector<MeasuredLayout>> NodeLayouts(const std::string& folder);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MEASURED_LAYOUTS_H_
