// Training of a GPT as Megatron-LM runs it, simulated: from sizes and a cluster to the time of an
// iteration.
//
//   GptRun run;
//   run.layers = 24;  run.hidden = 1024;  run.heads = 16;  run.tokens = 1024;
//   run.config.tensor = 2;  run.config.pipeline = 2;  run.config.micro_batches = 8;
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, SimulateRun(run, cluster));
//   p.step_time;  p.largest_device;  p.fits;
//
// Half precision; Megatron-LM's kernels (models/specs/megatron_kernels.h), attention unfused or
// not; any scheme; full recomputation as Megatron-LM's, a block at a time (Recompute::kBlocks);
// equal numbers of layers in all stages, the embedding with the first and the head with the last;
// tied embeddings, whose gradients the two ends sum; gradients of data-parallel replicas summed in
// half precision after the last backward; sends and receives block; Adam with 4-byte values. Layers
// keep what Megatron-LM's keep (models/specs/kept_activations.h): 34 s b h + 5 a s^2 b bytes each
// without tensor parallelism and recomputation, 34 s b h where attention is fused.
//
// Time and memory are PredictStep's (pipelines/step/step.h).
#ifndef PIPELAB_EXPERIMENTS_PREDICT_GPT_RUN_H_
#define PIPELAB_EXPERIMENTS_PREDICT_GPT_RUN_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/predict/measured_rows.h"
#include "models/specs/megatron_kernels.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "tools/base/units.h"

namespace pipelab {

struct GptRun {
  int64_t layers = 0, hidden = 0, heads = 0, tokens = 0;
  int64_t vocabulary = 0;  // of all tensor-parallel devices together
  AttentionImplementation attention = AttentionImplementation::kUnfused;
  // Sums of tensor parallelism run beside weight gradients (WithSumsBesideWeights).
  bool sums_beside_weights = false;
  // Scheme, grid, micro-batches, recomputation, sharding. Its own defaults are Megatron-LM's: no
  // overlap.
  StepConfig config = MegatronConfig();

  static StepConfig MegatronConfig();
};

// InvalidArgument naming what does not divide what; NotFound for what the device lacks.
absl::StatusOr<StepPrediction> SimulateRun(const GptRun& run, const ClusterSpec& cluster);
// The same, for what needs the model besides.
absl::Status WithSimulatedRun(
    const GptRun& run, const ClusterSpec& cluster,
    absl::FunctionRef<absl::Status(const StepModel&, const StepPrediction&)> look);

// The run of a row. Each tensor-parallel device has vocabulary / tensor words, rounded down;
// `vocabulary` is for rows that do not say.
GptRun RunOfRow(const MeasuredRow& row, int64_t vocabulary);

// Products of forward and backward of an iteration, without recomputation: 72 B s l h^2 (1 + s/6h +
// V/12lh) (Narayanan et al. 2021, section 5.1). Attention counts with all pairs of tokens, as
// papers do, or with those that a causal mask leaves, which half of s/6h stands for.
enum class AttentionFlops : uint8_t { kAllPairs, kCausal };
Flops ModelFlops(const GptRun& run, AttentionFlops attention);

// The words of GPT-2's tokens: what the measured rows imply, since without tensor parallelism their
// heads are slow as products of odd sizes are.
inline constexpr int64_t kGpt2Vocabulary = 50257;

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PREDICT_GPT_RUN_H_
