// MLPerf Training 5.0 and 5.1, Llama 3.1 405B in fp8, beside predictions. Rows of one machine
// differ in their micro-batches alone, so what a micro-batch takes and what a step takes besides
// are judged apart: the slope and the intercept of a line through the rows.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto rows, ParseMlperfRows(text, "mlperf_405b_rows.csv"));
//   PIPELAB_ASSIGN_OR_RETURN(const auto steps, PredictMlperf(rows, data.models, machines));
//   report.AddTable(MlperfTable(steps));
//   for (Claim& claim : MlperfClaims(steps)) report.AddClaim(std::move(claim));
//
// Where a submission's logs are silent, a step is as its system has it (docs/modern_models.md): it
// has sequence parallelism, tensor parallelism beside products, a ring of keys and values, and the
// optimizer's state divided. On GB200s it has CUDA graphs, and each pipeline has a rack's 64 GPUs,
// as the submissions' files say (TP_PP_DP_MAPPING of config_GB200_*.sh).
#ifndef PIPELAB_EXPERIMENTS_MODERN_MLPERF_ROWS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MLPERF_ROWS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

// Rows of group "mlperf". Errors name the file, the line and the column.
absl::StatusOr<std::vector<ModernRow>> ParseMlperfRows(absl::string_view text,
                                                       absl::string_view what);

struct MlperfStep {
  ModernRow row;
  double micro_batches = 0;
  double seconds = 0;  // predicted

  double error() const { return seconds / *row.Seconds() - 1; }
};

absl::StatusOr<std::vector<MlperfStep>> PredictMlperf(const std::vector<ModernRow>& rows,
                                                      const std::vector<ModernModel>& models,
                                                      const ModernMachines& machines);

Table MlperfTable(const std::vector<MlperfStep>& steps);
// Slope and intercept, by GPU.
Table MlperfLineTable(const std::vector<MlperfStep>& steps);
// Without steps: not made.
std::vector<Claim> MlperfClaims(const std::vector<MlperfStep>& steps);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MLPERF_ROWS_H_
