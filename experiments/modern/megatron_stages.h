// How NVIDIA's recipes cut a model into stages, where its blocks do not divide them.
//
//   // "Et|(t*2|)*62tL"
//   config.layout = MegatronLayout(/*blocks=*/126, /*further=*/0, /*stages=*/64);
//
// Llama 3.1 405B and Qwen3-235B count the embedding and the loss as a block each
// (account_for_embedding_in_pipeline_split and account_for_loss_in_pipeline_split). The layouts of
// DeepSeek-V3 and Kimi K2 give all stages but the last one as many blocks, and the last the rest
// with the heads (Megatron-Bridge's recipes/llama/h100/llama3.py, recipes/qwen/h100/qwen3_moe.py,
// recipes/kimi/h100/kimi_k2.py and perf_recipes/deepseek).
#ifndef PIPELAB_EXPERIMENTS_MODERN_MEGATRON_STAGES_H_
#define PIPELAB_EXPERIMENTS_MODERN_MEGATRON_STAGES_H_

#include <cstdint>
#include <string>

namespace pipelab {

// In Megatron-LM's letters, with the heads of so many further tokens; "" for one stage, and where
// neither rule leaves a block for the last stage or counts for all.
std::string MegatronLayout(int64_t blocks, int64_t further, int64_t stages);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MEGATRON_STAGES_H_
