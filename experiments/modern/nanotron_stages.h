// How nanotron cuts a model into stages (its models/base.py, build_model, and models/llama.py,
// get_block_compute_costs).
//
//   config.layout = NanotronLayout(model, /*stages=*/8);    // "Et*5|(t*4|)*2t*5|(t*4|)*3t*2L"
//
// A block costs its products' parameters, the head the size of its table, all else nothing. Blocks
// go to a stage until their sum is above its share, and the one that goes above it still belongs to
// it. So first stages have more than an even cut gives them, and keep more.
//
// With many stages the head may come before the last one. A cast and the loss then have stages of
// their own, to which logits are sent. Here the head is with the last stage, and a stage without a
// layer has a block of the nearest one before it that has two. Messages of logits are not priced.
#ifndef PIPELAB_EXPERIMENTS_MODERN_NANOTRON_STAGES_H_
#define PIPELAB_EXPERIMENTS_MODERN_NANOTRON_STAGES_H_

#include <cstdint>
#include <string>

#include "experiments/modern/modern_rows.h"

namespace pipelab {

// In Megatron-LM's letters; "" for one stage, and for more than the model has blocks.
std::string NanotronLayout(const ModernModel& model, int64_t stages);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_NANOTRON_STAGES_H_
