// A step of a GPT as the code of Seq1F1B's authors trains it (arXiv 2406.03488;
// github.com/thunlp/Seq1F1B at 43eb818, a Megatron-LM of 2023).
//
//   Seq1F1BSetup setup;
//   setup.scheme = "seq1f1b";
//   setup.tokens = 65536;
//   PIPELAB_ASSIGN_OR_RETURN(StepPrediction p, SimulateSeq1F1B(setup, cluster));
//
// What their code says:
// * --overlap-p2p-communication is off: messages go in calls, each of which ends with a
//   synchronisation of host and device, and nothing runs beside them (ir/message_calls.h). 1F1B,
//   with slices or without, has one message a call, interleaved up to four.
// * --timing-log-level 2: timers synchronise, too, before and behind each pass and call.
// * Kernels and what they keep are Megatron-LM's, with FlashAttention-2 at its published rate.
// * Nothing is recomputed. Weights have 2 bytes, gradients 4, and the optimizer is sharded.
//
// Not simulated: broadcasts of a sample's tokens, two in each micro-batch and stage.
#ifndef PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_STEP_H_
#define PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/step/step.h"

namespace pipelab {

// Measured milliseconds that the passes of one micro-batch take, all slices together.
struct MeasuredPasses {
  double forward = 0, backward = 0;            // of a stage without head
  double last_forward = 0, last_backward = 0;  // of the last one
};

struct Seq1F1BSetup {
  int64_t layers = 32, hidden = 4096, heads = 32, words = 32768;
  int64_t tokens = 0;
  std::string scheme;                  // kSeq1F1BSchemes
  int virtual_stages = 1, slices = 4;  // where the scheme has them
  int pipeline = 4, tensor = 8, data = 1, micro_batches = 1;
  int64_t launch_gap_us = 20;             // how long the device waits after one synchronisation
  double send_share = 1;                  // of a card's bandwidth between nodes
  int optimizer_tensors = 2;              // 0: before Adam's first step, which makes them
  absl::optional<MeasuredPasses> passes;  // instead of the kernels' times

  bool is_interleaved() const;
  bool is_sliced() const;
  // The authors' count of a sample's forward up to token x, with embedding, head, and softmax:
  // LinearWork x + SquareWork x^2.
  double LinearWork() const;
  double SquareWork() const;
  double Work(double x) const { return LinearWork() * x + SquareWork() * x * x; }
  // Tokens of slices of equal work, as the authors cut: from the last one on, whole multiples of T,
  // what is left in the first.
  std::vector<int64_t> EqualWorkSlices() const;
};

absl::StatusOr<StepPrediction> SimulateSeq1F1B(const Seq1F1BSetup& setup,
                                               const ClusterSpec& cluster);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_STEP_H_
