// Rows of measured training iterations of GPT models on a grid of devices: a CSV file with the
// header of vTrain's measurements (github VIA-Research/vTrain, data/),
//
//   # GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,
//   tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)
//
// in one line. A column of parameters may stand in front. A row that is not measured yet has no
// iteration time: its cell is empty. Further columns may follow, in any order, with cells that may
// be empty:
//
//   recompute        none, selective or full (empty: none); full is a block at a time, as
//                    Megatron-LM's and PyTorch's
//   attention        unfused or fused (empty: unfused)
//   virtual_stages   stages of a device (empty: the scheme's own)
//   scheme           of the catalogue, or a schedule file (empty: 1f1b, or interleaved where a
//                    device has several stages)
//   sharding         as in a configuration: none, optimizer, gradients, fully (empty: none)
//   vocabulary       words (empty: who predicts says how many)
//
//   PIPELAB_ASSIGN_OR_RETURN(MeasuredRows rows, ParseMeasuredRows(text, "--rows=a.csv"));
//   rows.rows[0].micro_batches();
//   WithColumns(rows, {"predicted_ms"}, {{"372.2"}, ...});   // the same text and one column more
//
// Errors: InvalidArgument, one line with file, line, column and reason.
#ifndef PIPELAB_EXPERIMENTS_PREDICT_MEASURED_ROWS_H_
#define PIPELAB_EXPERIMENTS_PREDICT_MEASURED_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "models/specs/megatron_kernels.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

struct MeasuredRow {
  int line = 0;  // of the file, from 1
  int64_t gpus = 0, batch = 0, micro_batch = 0;
  int64_t hidden = 0, heads = 0, layers = 0, tokens = 0;
  int64_t tensor = 0, data = 0, pipeline = 0;
  int64_t vocabulary = 0, virtual_stages = 0;  // 0: not said
  std::string scheme;                          // empty: not said
  Recompute recompute = Recompute::kNone;
  Sharding sharding = Sharding::kReplicated;
  AttentionImplementation attention = AttentionImplementation::kUnfused;
  absl::optional<double> milliseconds;
  std::string text;  // as it stands in the file

  int64_t micro_batches() const { return batch / (micro_batch * data); }  // of one pipeline
};

// The first, the fourth and so on of vTrain's measured rows calibrated `dgx-a100`.
inline constexpr int kCalibratingStride = 3;

struct MeasuredRows {
  std::string header;  // as it stands in the file
  std::vector<MeasuredRow> rows;
};

// `what` names the file in errors. Rows are such as Megatron-LM runs: GPUs are tensor x data x
// pipeline; data and micro-batches divide the batch, tensor parallelism the heads, heads the hidden
// size, the pipeline the layers. Empty lines are passed over. At least one row.
absl::StatusOr<MeasuredRows> ParseMeasuredRows(absl::string_view text, absl::string_view what);

// The file's text with more columns, whose cells are [row][column].
std::string WithColumns(const MeasuredRows& rows, const std::vector<std::string>& titles,
                        const std::vector<std::vector<std::string>>& cells);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PREDICT_MEASURED_ROWS_H_
