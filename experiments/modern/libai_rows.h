// Steps of Megatron-LM on V100s of a cloud, measured by LiBai's authors in 2022 for comparison with
// their own system: GPT of 24 blocks, 1,024 wide, with 1,024 tokens in fp16.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto rows, ParseLibaiRows(text, "libai_v100_rows.csv"));
//   PIPELAB_ASSIGN_OR_RETURN(auto steps, PredictLibai(rows));
//   report.AddTable(LibaiTable(steps));
//   report.AddClaim(LibaiClaim(steps));
//
// Priced is what their commit of January 2022 does (e156d2fea7): attention of separate kernels,
// sums of a product's input gradient beside its weight gradient (mpu/layers.py), messages in parts
// and in calls that synchronise, sums of gradients in fp16 after the last backward.
//
// The machine is dgx1-v100, as its run on one GPU calibrates it: all shares of peaks, and what the
// host takes, by one factor. A ring of two GPUs has the link between them alone. The network is
// printed nowhere. Assumed is a card of 100 Gbit/s for a node, as Amazon's instance of the same 8
// GPUs has it (P3dn); the predicted range goes from 25 Gbit/s (p3.16xlarge) to the 48 GB/s of a
// DGX-1.
#ifndef PIPELAB_EXPERIMENTS_MODERN_LIBAI_ROWS_H_
#define PIPELAB_EXPERIMENTS_MODERN_LIBAI_ROWS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/modern/row_steps.h"
#include "experiments/predict/measured_rows.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// Errors name the file, the line and the column.
absl::StatusOr<std::vector<MeasuredRow>> ParseLibaiRows(absl::string_view text,
                                                        absl::string_view what);

struct LibaiSteps {
  std::vector<RowStep> steps;  // with several GPUs
  double factor = 0;           // what calibrates the machine
};
// InvalidArgument unless exactly one row has one GPU.
absl::StatusOr<LibaiSteps> PredictLibai(const std::vector<MeasuredRow>& rows);

Table LibaiTable(const std::vector<RowStep>& steps);
// Without steps: not made.
Claim LibaiClaim(const std::vector<RowStep>& steps);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_LIBAI_ROWS_H_
