// Training of a GPT as Megatron-LM runs it, on paper: from sizes and a cluster to the time of an
// iteration.
//
//   GptRun run;
//   run.layers = 24;  run.hidden = 1024;  run.heads = 16;  run.tokens = 1024;
//   run.tensor = 2;  run.pipeline = 2;  run.micro_batch = 4;  run.micro_batches = 8;
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, SimulateRun(run, cluster));
//   p.step_time;
//
// Half precision; unfused attention and Megatron-LM's kernels (models/specs/megatron_kernels.h);
// 1F1B, interleaved where a device has several chunks; equal numbers of layers in all stages, the
// embedding with the first and the head with the last; tied embeddings, whose gradients the two
// ends sum; gradients of data-parallel replicas summed in half precision after the last backward;
// sends and receives block; Adam with 4-byte values.
//
// The time is the simulator's, of the lowered program (pipelines/step/step.h).
#ifndef PIPELAB_EXPERIMENTS_VALIDATION_GPT_RUN_H_
#define PIPELAB_EXPERIMENTS_VALIDATION_GPT_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "experiments/validation/measured_rows.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct GptRun {
  int64_t layers = 0, hidden = 0, heads = 0, tokens = 0;
  int64_t vocabulary = 0;  // of all tensor-parallel devices together
  int64_t pipeline = 1, tensor = 1, data = 1;
  int64_t chunks = 1;       // stages of a device; more than 1: the interleaved schedule
  int64_t micro_batch = 1;  // samples
  int64_t micro_batches = 1;
  bool recompute = false;
};

// InvalidArgument naming what does not divide what; NotFound for what the device lacks.
absl::StatusOr<StepPrediction> SimulateRun(const GptRun& run, const ClusterSpec& cluster);

// Of a measured row. Each tensor-parallel device has vocabulary / tensor words, rounded down.
GptRun RunOfRow(const MeasuredRow& row, int64_t vocabulary);

// The words of GPT-2's tokens: what the measured rows imply, since without tensor parallelism their
// heads are slow as products of odd sizes are.
inline constexpr int64_t kGpt2Vocabulary = 50257;

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VALIDATION_GPT_RUN_H_
