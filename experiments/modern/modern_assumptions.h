// What a published run's system does that its row does not print (docs/modern_models.md): which
// transfers run beside compute, what a parameter takes, what is computed again.
//
//   step.config.state = StateNumbersOf(row);
//   PIPELAB_RETURN_IF_ERROR(InferRecomputation(row, &step));    // once all else is known
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_ASSUMPTIONS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_ASSUMPTIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"
#include "pipelines/cost/state_numbers.h"

namespace pipelab {

// Whether rows of tensor parallelism move beside products. NVIDIA's systems on Megatron-Core, and
// Megatron-LM in its published runs, have that where T is above 1 (tp_comm_overlap of NeMo's and
// Megatron-Bridge's comm_overlap.py), torchtitan where it prints "async TP".
bool OverlapsTensor(const ModernRow& row);
// NVIDIA's systems on Megatron-Core. Messages of their interleaved stages move beside compute in
// the steady phase (overlap_p2p_comm; its extension to warm-up and flush is off by default).
bool IsMegatronCore(const ModernRow& row);

// Bytes of weights and gradients.
StateNumbers StateNumbersOf(const ModernRow& row);

// nanotron with gradients summed in 4 bytes. Stage 0 of ZeRO is PyTorch's DistributedDataParallel,
// which sums beside the last backward (trainer.py, make_ddp). Stage 1 is none: it sums all
// gradients when the backward is over (data_parallel/utils.py), and gathers weights when the
// optimizer is.
void TakeNanotronSums(int64_t blocks, StepConfig* config);

// As printed. Modules' names are checked where they are used. FailedPrecondition for what no step
// of ours recomputes.
absl::Status TakeRecomputation(const ModernRow& row, ModernStep* step);

// Where a row prints nothing: none if the run fits without. Otherwise it must have had some, since
// it ran: of Megatron-Core as few blocks of each stage as it takes (--recompute-method block), of
// other systems all blocks.
absl::Status InferRecomputation(const ModernRow& row, ModernStep* step);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_ASSUMPTIONS_H_
