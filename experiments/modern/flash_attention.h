// FlashAttention-2 and the version before it reach these rates on A100 and H100, as their authors
// print them, and FlashAttention-2 on B200, as a user does. It is the attention of PyTorch of 2023
// to 2025, where machines of the catalogue have a table of newer kernels or an assumed share of the
// peak.
//
//   TakeFlashAttention2("H100", /*head_size=*/128, /*tokens=*/4096, &cluster);   // 294 Tflop/s
//
// Forward and backward, causal, 16,384 tokens of a hidden size of 2,048, heads of 64 and 128,
// samples of 512 to 16,384 tokens; between these on a line, outside as at the nearest (Dao-AILab,
// flash-attention, assets at commit 0251105a2f; Dao, arXiv 2307.08691). Of B200 the authors print
// none: Dao-AILab/flash-attention, issue 1589 (flash_attn 2.7.4.post1, April 2025) has forward and
// backward of heads of 64 without a mask, and meta-pytorch/tritonbench, pull request 171, forwards
// of heads of 128 that are as fast (352 to 362 Tflop/s with 2,048 to 8,192 tokens).
#ifndef PIPELAB_EXPERIMENTS_MODERN_FLASH_ATTENTION_H_
#define PIPELAB_EXPERIMENTS_MODERN_FLASH_ATTENTION_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

// Tflop/s, of GPUs whose name begins with A100, H100, B200 or GB200; none of others.
absl::optional<double> FlashAttention2Rate(const std::string& gpu, int64_t head_size,
                                           int64_t tokens);

// The abstract of Dao, arXiv 2307.08691: FlashAttention-2 is around 2 times as fast as the first.
constexpr double kFlashAttention1Share = 0.5;

// Scales the machine's shares of attention so that the largest is `share` of that rate. Small
// operations stay as much below it as they were.
void TakeFlashAttention2(const std::string& gpu, int64_t head_size, int64_t tokens,
                         ClusterSpec* cluster, double share = 1);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_FLASH_ATTENTION_H_
