// Steps on one node of 8 B200s in bf16, with their peak memory, beside predictions: published by
// MooreThreads/SimuMax 1.2 for its own simulator, which is 5.6 % off in the median and 0.5 % in
// memory with a table of that machine. Here the machine is dgx-b200, as everybody can have it, and
// once more the one of that table (pipelines/cluster/simumax_json.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(auto rows, ParseSimumaxRows(text, "simumax_b200_rows.csv", models));
//   PIPELAB_ASSIGN_OR_RETURN(auto steps, PredictSimumax(rows, machines));
//   report.AddTable(SimumaxTable(steps));
//   for (Claim& claim : SimumaxClaims(steps)) report.AddClaim(std::move(claim));
//   machines.by_gpu["B200"] = own_machine;               // LoadCluster of their file
//   PIPELAB_ASSIGN_OR_RETURN(auto own_steps, PredictSimumax(rows, machines));
//   report.AddTable(SimumaxOwnTable(own_steps));
//   report.AddClaim(SimumaxOwnTableClaim(own_steps));
//
// A row's name says all: the model with its number of layers (l), degrees of tensor (tp), context
// (cp), pipeline (pp) and data parallelism (dp), micro-batches of one sample (mbc), the length
// (seq, or 4,096), and `cef` for Transformer Engine's loss (docs/strategy.md there). They ran
// Megatron-Core with Transformer Engine: gradients in 4 bytes, the optimizer's state divided,
// nothing beside compute, and attention's heads exchanged among context-parallel ranks
// (cp_comm_type=a2a; docs/b200 of their repository). Each rank has a multiple of 128 words, and
// 405B has 16 heads of keys and values there. Rows with experts are not predicted: SimuMax does
// not print how their layers are cut.
#ifndef PIPELAB_EXPERIMENTS_MODERN_SIMUMAX_ROWS_H_
#define PIPELAB_EXPERIMENTS_MODERN_SIMUMAX_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"
#include "experiments/modern/row_steps.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct SimumaxRows {
  std::vector<ModernModel> models;  // of as many layers as rows have
  std::vector<ModernRow> rows;      // of group "mcore"; their names are their ids
  int64_t with_experts = 0;         // rows that are passed over
};

// `models` have the whole ones. Errors name the file, the line and the word.
absl::StatusOr<SimumaxRows> ParseSimumaxRows(absl::string_view text, absl::string_view what,
                                             const std::vector<ModernModel>& models);

absl::StatusOr<std::vector<RowStep>> PredictSimumax(const SimumaxRows& rows,
                                                    const ModernMachines& machines);

Table SimumaxTable(const std::vector<RowStep>& steps);
// Without steps: not made.
std::vector<Claim> SimumaxClaims(const std::vector<RowStep>& steps);

// These are for steps on the machine of their own table.
Table SimumaxOwnTable(const std::vector<RowStep>& steps);
Claim SimumaxOwnTableClaim(const std::vector<RowStep>& steps);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_SIMUMAX_ROWS_H_
