// A router's choices, and rows that go to experts and back (kernels/expert_kernels.h).
//
//   ChooseExperts(shape, logits, weights, experts);
//   PlaceChoices(shape, experts, places, begins);
//
// Row-major.
#ifndef PIPELAB_KERNELS_CPU_EXPERTS_H_
#define PIPELAB_KERNELS_CPU_EXPERTS_H_

#include <cstdint>

#include "kernels/expert_kernels.h"

namespace pipelab {
namespace cpu {

void ChooseExperts(const RouterShape& shape, const float* logits, float* weights, int32_t* experts);
void PlaceChoices(const RouterShape& shape, const int32_t* experts, int32_t* places,
                  int32_t* begins);
void RouterBackward(const RouterShape& shape, const float* dweights, const float* logits,
                    const int32_t* experts, float balance, float* dlogits);  // which may be logits

float DotOfVectors(const float* a, const float* b, int64_t n);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_EXPERTS_H_
