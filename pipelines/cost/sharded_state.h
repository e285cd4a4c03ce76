// Sizes of the collectives that move parameters and gradients, sharded or not (ir/sharding.h), and
// the share of a step.
//
//   Bytes whole = GatherBytes(costs, program, program.gathers[i.arg]);
//
// What the runtime's stages send, to the byte: parts are equal and the last are padded, a number
// has the bytes of StageMemory::numbers. A stage's own parameters have
// StageMemory::gradients bytes; the rest of its weights are tied to other stages and never sharded.
// What devices keep of them: state_walk.h.
#ifndef PIPELAB_PIPELINES_COST_SHARDED_STATE_H_
#define PIPELAB_PIPELINES_COST_SHARDED_STATE_H_

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// The whole tensor, with its padding: before a reduce-scatter, after an all-gather.
Bytes ReductionBytes(const CostTable& costs, const Program& program, const Reduction& reduction);
Bytes GatherBytes(const CostTable& costs, const Program& program, const Gather& gather);
// What the copies with the same experts do after it for these, in the same way; 0: nothing.
Bytes ExpertReductionBytes(const CostTable& costs, const Program& program,
                           const Reduction& reduction);
Bytes ExpertGatherBytes(const CostTable& costs, const Program& program, const Gather& gather);

// A hop of weights that travel, or of their gradients.
Bytes HopBytes(const StageMemory& memory, bool gradient);

// What each copy has of the norm: a float for each parameter value of the model.
Bytes NormBytes(const NormSum& norm);

// The share of a stage's parameters that the copy steps, 0 to 1.
double StepShare(const CostTable& costs, const Program& program, const StageCopy& copy);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_SHARDED_STATE_H_
