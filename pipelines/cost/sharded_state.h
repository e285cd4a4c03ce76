// Bytes of weights, gradients and optimizer state where they may be sharded (ir/sharding.h), and of
// the collectives that move them.
//
//   std::vector<Bytes> peak = PeakState(costs, program);        // [device]
//
// What the runtime's stages allocate, to the byte: parts are equal and the last are padded, four
// bytes an element. A stage's own parameters have StageMemory::gradients bytes; the rest of its
// weights are tied to other stages and never sharded.
//
//   kept                values     gradients               the optimizer's
//   replicated          whole      whole                   whole
//   optimizer           whole      whole                   part
//   gradients           whole      part; whole in a run    part
//   fully               part;      part; whole in a run    part
//                       whole in a run
//
// "In a run": from its gather, or its first weight gradient, to its release, or the end of its
// reduction.
#ifndef PIPELAB_PIPELINES_COST_SHARDED_STATE_H_
#define PIPELAB_PIPELINES_COST_SHARDED_STATE_H_

#include <vector>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

// [device] The most at a time, older weight versions included.
std::vector<Bytes> PeakState(const CostTable& costs, const Program& program);

// The whole tensor, with its padding: before a reduce-scatter, after an all-gather.
Bytes ReductionBytes(const CostTable& costs, const Program& program, const Reduction& reduction);
Bytes GatherBytes(const CostTable& costs, const Program& program, const Gather& gather);

// What each copy has of the norm: a float for each parameter value of the model.
Bytes NormBytes(const NormSum& norm);

// The share of a stage's parameters that the copy steps, 0 to 1.
double StepShare(const CostTable& costs, const Program& program, const StageCopy& copy);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_COST_SHARDED_STATE_H_
