// How the depth K of a product y_MN = x_MK w_KN, the length of its sums, decides its rate on Hopper
// GPUs: a tile of y takes as long to start and to write as K0 more terms would.
//
//   if (HasProductDepth(row.gpu)) TakeDeepProducts(&step.cluster);
//   graph = WithProductDepth(std::move(graph), HopperDepth(NumberType::kBf16));
//
// K0 follows from DeepGEMM's published rates on H800s, of products with M = 4096 in fp8, by K: 590
// Tflop/s at 512, 990 at 1536, 1025 at 2048, 1304 at 7168 (1058 where N is 2112), 1358 at 16384.
// With K0 = 640, 1358 (1 + K0 / 16384) / (1 + K0 / K) gives 627, 996, 1075, 1295 and 1358. A tile's
// terms take twice as long in bf16, its start and end do not: 320.
#ifndef PIPELAB_EXPERIMENTS_MODERN_PRODUCT_DEPTH_H_
#define PIPELAB_EXPERIMENTS_MODERN_PRODUCT_DEPTH_H_

#include <string>

#include "models/specs/product_depth.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/device.h"

namespace pipelab {

// Whether the GPU is one of these: "H100", "H200", "H100-96GB-500W".
bool HasProductDepth(const std::string& gpu);

ProductDepth HopperDepth(NumberType type);

// The share of the peak that `dgx-h100` has is that of GPT-3 175B's products, whose 1 + K0 / K is
// 1.07 in the mean by flops (T=4, b=1). Without their depth it is so much more.
void TakeDeepProducts(ClusterSpec* cluster);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_PRODUCT_DEPTH_H_
