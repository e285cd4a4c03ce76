// Layouts of Transformers in whole blocks, two layers each, the embedding with the first stage and
// the head with the last.
//
//   EvenBlocks(/*blocks=*/8, /*stages=*/4)     // "5+4+4+5"
//   GatherByBlock(/*blocks=*/8, &config);      // FSDP without a pipeline
//   SumByBlock(/*blocks=*/8, &config);         // gradients summed beside the backward
#ifndef PIPELAB_PIPELINES_STEP_BLOCK_LAYOUT_H_
#define PIPELAB_PIPELINES_STEP_BLOCK_LAYOUT_H_

#include <cstdint>
#include <string>

#include "pipelines/step/step_config.h"

namespace pipelab {

// "" where the blocks do not divide, which leaves the cut to the step, and for one stage.
std::string EvenBlocks(int64_t blocks, int64_t stages);

// FSDP without a pipeline gathers the weights of a block before each of its passes, and lets them
// go: one device then has a stage for each block. Changes nothing of other configurations, and says
// whether it did.
bool GatherByBlock(int64_t blocks, StepConfig* config);

// PyTorch's DistributedDataParallel without a pipeline sums gradients beside the last backward,
// some at a time: a block's here. Changes nothing of configurations with a pipeline or with one
// copy.
void SumByBlock(int64_t blocks, StepConfig* config);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_BLOCK_LAYOUT_H_
