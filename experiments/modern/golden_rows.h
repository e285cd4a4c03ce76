// Golden values of Megatron-LM's functional tests that record speed and memory: a GPT of 7B on 8
// GPUs, beside predictions from the test's own options.
//
//   PIPELAB_ASSIGN_OR_RETURN(const auto rows, ReadGoldenRows());
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<RowStep> steps, PredictGolden(rows));
//   report.AddTable(GoldenTable(steps));
//   report.AddClaim(GoldenClaim(steps));
//
// releases/megatron_lm_tests.csv has facts from github.com/NVIDIA/Megatron-LM at commit d98e8a64dd
// (BSD 3-Clause), tests/functional_tests/test_cases/gpt/CASE: of golden_values_dev_PLATFORM.json
// the median of iteration-time behind the first two steps, and the largest mem-max-allocated-bytes;
// of model_config.yaml the options that change a step. GPUs are those of tests/test_utils/recipes.
//
// All run with --deterministic-mode. By its code and Transformer Engine's (fused_attn.cpp, commit
// 015d346d81):
//   NCCL_ALGO=Ring   all-reduces are rings here
//   fills            PyTorch fills what is allocated (LaunchedKernels::filled_outputs)
//   attention        cuDNN's on Hopper alone; FlashAttention-2 on older and newer GPUs (Transformer
//                    Engine's get_attention_backend, commit 002a3e573f), at its printed rate.
//                    Its gradient is a deterministic one, whose rates nobody prints for these GPUs:
//                    not priced. FlashAttention-3's is 1.2 to 1.6 times slower on an H100
//                    (Dao-AILab/flash-attention, pull request 1893)
#ifndef PIPELAB_EXPERIMENTS_MODERN_GOLDEN_ROWS_H_
#define PIPELAB_EXPERIMENTS_MODERN_GOLDEN_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/modern/row_steps.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

// Peak memory is that of the last rank, which logs it; the fullest device's is compared with it.
struct GoldenRow {
  std::string name;     // case and platform
  std::string cluster;  // of the catalogue
  int64_t gpus = 0;
  double seconds = 0, peak_gib = 0;
  std::string options;  // Megatron-LM's
};

// Errors name the file, the line and the column.
absl::StatusOr<std::vector<GoldenRow>> ParseGoldenRows(absl::string_view text,
                                                       absl::string_view what);
absl::StatusOr<std::vector<GoldenRow>> ReadGoldenRows();  // the project's own file

absl::StatusOr<std::vector<RowStep>> PredictGolden(const std::vector<GoldenRow>& rows);

Table GoldenTable(const std::vector<RowStep>& steps);
// Without steps: not made.
Claim GoldenClaim(const std::vector<RowStep>& steps);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_GOLDEN_ROWS_H_
