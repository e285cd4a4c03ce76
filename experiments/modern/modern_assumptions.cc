#include "experiments/modern/modern_assumptions.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "pipelines/step/block_layout.h"
#include "tools/base/status_macros.h"

namespace pipelab {

bool IsMegatronCore(const ModernRow& row) {
  constexpr absl::string_view kMegatron[] = {"dgxc", "mbridge", "mlperf", "nemo1", "mlm"};
  const bool jax =
      absl::StrContains(row.system, "MaxText") || absl::StrContains(row.system, "Paxml");
  return !jax &&
         std::find(std::begin(kMegatron), std::end(kMegatron), row.group) != std::end(kMegatron);
}

bool OverlapsTensor(const ModernRow& row) {
  return IsMegatronCore(row) || absl::StrContains(row.kernels, "async TP");
}

// Megatron-Core has weights in 2 bytes and sums gradients in 4 by default, in 2 in the recipes of
// NeMo and Megatron-Bridge (grad_reduce_in_fp32=False; grad_sync_dtype=bf16 of NeMo 1). Under fp8
// their weights are in fp8 (fp8_param_gather=True): on Blackwell one copy serves all products, on
// Hopper the transpose is kept, too, and MXFP8 has blocks along rows and along columns.
//
// FSDP casts what it moves. torchtitan and AutoModel sum gradients in 4 bytes
// (mixed_precision_reduce), llm-foundry in 2 (mixed_precision: PURE); of the others nothing was
// read.
StateNumbers StateNumbersOf(const ModernRow& row) {
  if (row.group == "mlm" || row.group == "mcore") return {/*weights=*/2, /*gradients=*/4};
  const bool blackwell = absl::StrContains(row.gpu, "B200") || absl::StrContains(row.gpu, "B300");
  const bool gathers_fp8 = row.group == "mbridge" || row.group == "mlperf";
  if (gathers_fp8 && row.precision == "FP8" && blackwell) {
    return {/*weights=*/1, /*gradients=*/2};
  }
  if (IsMegatronCore(row)) return {/*weights=*/2, /*gradients=*/2};
  if (row.group == "titan" || row.group == "automodel") {
    return {/*weights=*/2, /*gradients=*/4, /*cast=*/true};
  }
  // nanotron's 20 bytes a parameter: StepOfRow.
  if (row.group == "nanotron") return StateNumbers();
  return {/*weights=*/2, /*gradients=*/2, /*cast=*/true};
}

// Its sum is an all-reduce, and the gather has 2 bytes a number: here a reduce-scatter and a gather
// of 4.
void TakeNanotronSums(int64_t blocks, StepConfig* config) {
  if (config->sharding == Sharding::kReplicated) SumByBlock(blocks, config);
  if (config->sharding == Sharding::kOptimizer) config->overlap_data = false;
}

absl::Status TakeRecomputation(const ModernRow& row, ModernStep* step) {
  const std::string& word = row.recompute;
  constexpr absl::string_view kModules = "selective:";
  if (word.empty() || word == "none") return absl::OkStatus();
  if (absl::StartsWith(word, "full layer")) {
    step->config.recompute = Recompute::kBlocks;
  } else if (word == "selective op") {
    step->recomputed = {"every_second_product"};
  } else if (absl::StartsWith(word, kModules)) {
    step->recomputed = absl::StrSplit(word.substr(kModules.size()), '+');
  } else {
    return absl::FailedPreconditionError(absl::StrCat("recomputation \"", word, "\""));
  }
  return absl::OkStatus();
}

absl::Status InferRecomputation(const ModernRow& row, ModernStep* step) {
  if (!row.recompute.empty()) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const ModernStepModel model, ModernStepModel::Of(*step));
  const auto fits = [&]() -> absl::StatusOr<bool> {
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, model.Predict(*step));
    return p.fits;
  };
  PIPELAB_ASSIGN_OR_RETURN(const bool without, fits());
  if (without) return absl::OkStatus();
  step->inferred = true;
  StepConfig& c = step->config;
  c.recompute = Recompute::kBlocks;
  if (!IsMegatronCore(row) || c.pipeline == 1) return absl::OkStatus();
  const int64_t stages = row.pipeline * std::max<int64_t>(1, row.virtual_stages);
  const auto blocks = static_cast<int>((step->model.layers + stages - 1) / stages);
  for (c.rebuilt_blocks = 1; c.rebuilt_blocks < blocks; ++c.rebuilt_blocks) {
    PIPELAB_ASSIGN_OR_RETURN(const bool enough, fits());
    if (enough) return absl::OkStatus();
  }
  c.rebuilt_blocks = 0;  // all
  return absl::OkStatus();
}

}  // namespace pipelab
