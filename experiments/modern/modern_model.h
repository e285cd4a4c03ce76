// A model of the rows' table as one of ours, and what its rows count as its flops.
//
//   PIPELAB_ASSIGN_OR_RETURN(const GptConfig model, ModelOf(table_row, row));
//
// What the names of kinds in the column `attention` mean here: gpt-oss has windows in every other
// block, and sinks and biases of its products that cost nothing; deepseek-v3's layer for a further
// token is one more block, and its second pass through the head is left out; squared ReLU costs
// what a GELU does.
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_MODEL_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_MODEL_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/modern/modern_rows.h"
#include "models/zoo/gpt.h"

namespace pipelab {

// FailedPrecondition with a reason that rows share where it has parts that are not priced.
absl::StatusOr<GptConfig> ModelOf(const ModernModel& model, const ModernRow& row);

// A step's seconds, of a dense model whose source prints flops a second alone: Megatron-LM counts
// attention in full, Megatron-Bridge the half that is not masked.
absl::optional<double> SecondsFromFlops(const ModernModel& model, const ModernRow& row);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_MODEL_H_
