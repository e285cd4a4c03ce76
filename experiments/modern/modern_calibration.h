// The rows that give KernelRates::sustained, what training steps have of the rates of kernels that
// were timed alone. What calibrates is judged nowhere.
//
//   Calibrates(row);
//   PIPELAB_ASSIGN_OR_RETURN(const double share, BestSustained(data.rows, data.models, machines));
//
// One value is for all GPUs and types of numbers. It follows from the bf16 rows on H100s of GPT-3
// 175B and Nemotron-4 340B of the DGX Cloud recipes and of MPT-70B of llm-foundry: the largest
// dense models of the two sources, and the model whose rows gave dgx-h100 its share of the peak.
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_

#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"

namespace pipelab {

// Source, GPU and precision.
using ModernRuns = std::tuple<std::string, std::string, std::string>;
ModernRuns RunsOf(const ModernRow& row);

bool Calibrates(const ModernRow& row);

// To two digits: the value with which the mean of |log(predicted / measured)| over these rows is
// the least. The specifications have it as it was before any other row was predicted with it.
// NotFound where no row calibrates.
absl::StatusOr<double> BestSustained(const std::vector<ModernRow>& rows,
                                     const std::vector<ModernModel>& models,
                                     const ModernMachines& machines);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
