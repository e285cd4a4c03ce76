// Convolutions by oneDNN on the calling thread: primitives made once a shape and pass, weights
// brought from the plain layout into the primitive's and back.
//
//   ConvolutionCache cache(&clock);
//   cache.Forward(shape, x, w, /*b=*/nullptr, scratch, y);
//
// `scratch` holds ConvolutionWorkspaceFloats(shape) floats, aligned to a cache line. Making a
// primitive takes about a millisecond; running one costs some microseconds besides the work.
#ifndef PIPELAB_KERNELS_CPU_CONVOLUTION_H_
#define PIPELAB_KERNELS_CPU_CONVOLUTION_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "kernels/convolution_kernels.h"
#include "kernels/cpu/library_clock.h"

namespace pipelab {
namespace cpu {

class ConvolutionPrimitive;  // one shape and pass

class ConvolutionCache {
 public:
  explicit ConvolutionCache(LibraryClock* clock);
  ~ConvolutionCache();

  void Forward(const ConvolutionShape& shape, const float* x, const float* w, const float* b,
               float* scratch, float* y);
  void InputGradient(const ConvolutionShape& shape, const float* dy, const float* w, float* scratch,
                     float* dx);
  void WeightGradient(const ConvolutionShape& shape, const float* x, const float* dy,
                      float* scratch, float* dw);  // adds to dw

 private:
  using Key = std::array<int64_t, 14>;
  ConvolutionPrimitive& Find(const ConvolutionShape& shape, ConvolutionPass pass, bool bias);

  LibraryClock* const clock_;
  std::map<Key, std::unique_ptr<ConvolutionPrimitive>> primitives_;
};

}  // namespace cpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CPU_CONVOLUTION_H_
