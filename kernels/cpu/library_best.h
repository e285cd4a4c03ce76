// What oneDNN reaches alone: the same product or convolution in whatever layout it likes best, with
// scratch of its own and nothing copied before or after. Benchmarks divide by it.
//
//   double seconds = BestMatmulSeconds({m, k, n}, &ThreadSeconds);
//
// Seconds of one call by the given clock.
#ifndef PIPELAB_KERNELS_CPU_LIBRARY_BEST_H_
#define PIPELAB_KERNELS_CPU_LIBRARY_BEST_H_

#include <functional>

#include "kernels/convolution_kernels.h"
#include "kernels/shape_checks.h"

namespace pipelab {
namespace cpu {

using Clock = double (*)();  // seconds
double ThreadSeconds();      // processor time of the calling thread

// The least time of a call of `body`: 5 to 1000 of them within some 50 ms, after one to warm up.
double LeastSeconds(Clock clock, const std::function<void()>& body);

// x_MK w_KN, the least of dnnl_sgemm and of the matmul primitive with the weights in its layout.
double BestMatmulSeconds(const MatmulSize& size, Clock clock);
// The matmul primitive alone, all of it in bfloat16 but the result.
double BestBFloat16MatmulSeconds(const MatmulSize& size, Clock clock);
// The least of images with channels last, channels first and in blocks of channels.
double BestConvolutionSeconds(const ConvolutionShape& shape, ConvolutionPass pass, Clock clock);

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_LIBRARY_BEST_H_
