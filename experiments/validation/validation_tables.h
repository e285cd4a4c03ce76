// Tables of the cost model's validation: errors of measured rows by what the rows have in common,
// the rows that it misses most with a reason, and the Megatron-LM paper's rows.
//
//   report.AddTable(ErrorTable(errors));
//   report.AddTable(WorstRowsTable(errors, cluster, 10));
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<MegatronResult> rows, PredictMegatron(paper, cluster));
#ifndef PIPELAB_EXPERIMENTS_VALIDATION_VALIDATION_TABLES_H_
#define PIPELAB_EXPERIMENTS_VALIDATION_VALIDATION_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/predict/predict_rows.h"
#include "experiments/published/megatron.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// The errors of all rows, by hidden size, layers, micro-batch, micro-batches, and degrees.
Table ErrorTable(const std::vector<RowError>& all);

// The largest errors, each with what can be said of it.
Table WorstRowsTable(const std::vector<RowError>& errors, const ClusterSpec& cluster,
                     int64_t count);

// What can be said of a row's error: whether the host or the device rules its time in the model,
// and whether a row of the same model with more work for each device took less time, which no model
// of sizes can follow.
std::string ReasonOf(const RowError& error, const std::vector<RowError>& all,
                     const ClusterSpec& cluster);

struct MegatronResult {
  PublishedMegatronRow published;
  double tflops = 0;            // of a GPU, by the paper's formula
  double bubble = 0;            // share of the devices' time
  Bytes memory, device_memory;  // of the fullest device; of each

  double error() const { return tflops / published.tflops - 1; }  // above 0: too fast
};
absl::StatusOr<std::vector<MegatronResult>> PredictMegatron(const MegatronPaper& paper,
                                                            const ClusterSpec& cluster);
// Whether the rows are within 5 % of what the paper printed in the mean, and each within 10 %.
Claim MegatronClaim(const std::vector<MegatronResult>& results);
// Whether all of them fit into the cluster's devices.
Claim MegatronMemoryClaim(const std::vector<MegatronResult>& results);
Table MegatronTable(const MegatronPaper& paper, const std::vector<MegatronResult>& results);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VALIDATION_VALIDATION_TABLES_H_
