// How much of the experts' exchanges runs beside compute when the forward of one micro-batch is
// merged with the backward of another, block by block, as in Megatron-Core
// (overlap_moe_expert_parallel_comm, megatron/core/models/common/model_chunk_schedule_plan.py):
//
//   exchanges   combine_backward | dispatch_forward, dispatch_backward | combine_forward
//   compute     attention_forward | experts_backward, experts_forward  | attention_backward
//
// The three parts follow one another. Within the middle one the forward's experts wait for their
// rows, and the backward's rows for their gradients; without delayed weight gradients these come
// after the experts' whole backward, with them (delay_wgrad_compute) after its input part. A part
// never takes less than its compute, so all that can hide is the exchanges.
//
//   const Nanoseconds hidden = HiddenExchanges({exchange, attention, experts}, /*delayed=*/false);
#ifndef PIPELAB_PIPELINES_COST_EXCHANGE_OVERLAP_H_
#define PIPELAB_PIPELINES_COST_EXCHANGE_OVERLAP_H_

#include "tools/base/units.h"

namespace pipelab {

struct BlockPartTimes {
  Nanoseconds forward, backward_input, backward_weight;
};

struct MergedBlock {
  Nanoseconds exchange;               // of one of the four
  BlockPartTimes attention, experts;  // without exchanges
};

// What is hidden of the four exchanges together: 0 to 4 times one.
Nanoseconds HiddenExchanges(const MergedBlock& block, bool delayed_weights);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_EXCHANGE_OVERLAP_H_
