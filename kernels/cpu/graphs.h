// Loops over the edges of a block (kernels/graph_kernels.h). Rows of C floats; of H heads. Some
// take a range of the rows that they write, for threads that share them.
//
//   AggregateForward(edges, AggregateMode::kMean, 0, edges.targets, c, x, y);
#ifndef PIPELAB_KERNELS_CPU_GRAPHS_H_
#define PIPELAB_KERNELS_CPU_GRAPHS_H_

#include <cstdint>

#include "kernels/graph_kernels.h"

namespace pipelab {
namespace cpu {

struct EdgePlaces {  // GraphIndex
  int64_t sources, targets;
  const int32_t *offsets_T1, *sources_E, *targets_E, *back_offsets_S1, *back_edges_E;
};

void GatherRows(const int32_t* ids, int64_t m, int64_t c, const float* x, float* y);
void AggregateForward(const EdgePlaces& edges, AggregateMode mode, int64_t begin, int64_t end,
                      int64_t c, const float* x, float* y);
void AggregateBackward(const EdgePlaces& edges, AggregateMode mode, int64_t begin, int64_t end,
                       int64_t c, const float* dy, float* dx);
float Product(const float* a, const float* b, int64_t n);
void EdgeSoftmaxForward(const EdgePlaces& edges, float slope, int64_t heads, const float* source,
                        const float* target, float* a);
// da becomes the sums' gradient, of which dtarget has each target's.
void EdgeSoftmaxBackward(const EdgePlaces& edges, float slope, int64_t heads, const float* source,
                         const float* target, const float* a, float* da, float* dtarget);
void SumsOfSources(const EdgePlaces& edges, int64_t heads, const float* of_edge, float* of_source);
void WeighedForward(const EdgePlaces& edges, int64_t begin, int64_t end, int64_t c, int64_t heads,
                    const float* a, const float* x, float* y);
void WeighedBackward(const EdgePlaces& edges, int64_t begin, int64_t end, int64_t c, int64_t heads,
                     const float* a, const float* x, const float* dy, float* da, float* dx);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_GRAPHS_H_
