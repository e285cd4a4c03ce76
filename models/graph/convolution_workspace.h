// Scratch of one convolution call, forward or either gradient, in floats: what planners add to the
// peak of a convolution. Every backend charges exactly this, whatever processor it finds
// (kernels/convolution_kernels.h), and a test in models/layers holds the two to each other.
//
//   ConvolutionWorkspaceSizes sizes{/*in_channels=*/64, /*out_channels=*/128, 3, 3};
//   Bytes scratch(4 * ConvolutionWorkspaceFloats(sizes));   // 304 KiB
//
// Parameters are kept in one plain layout; a call copies them into the library's, whose channels
// come in vectors of 16. It does not depend on the number of samples: one sample's pixels are
// gathered at a time where a kernel of 1 x 1 has a stride.
#ifndef PIPELAB_MODELS_GRAPH_CONVOLUTION_WORKSPACE_H_
#define PIPELAB_MODELS_GRAPH_CONVOLUTION_WORKSPACE_H_

#include <cstdint>

namespace pipelab {

struct ConvolutionWorkspaceSizes {
  int64_t in_channels = 0, out_channels = 0, kernel_height = 1, kernel_width = 1;
  bool depthwise = false;
  bool strided = false;
  int64_t out_pixels = 0;  // of one sample
};

constexpr int64_t ConvolutionWorkspaceFloats(const ConvolutionWorkspaceSizes& s) {
  const int64_t in = (s.in_channels + 15) / 16 * 16, out = (s.out_channels + 15) / 16 * 16;
  const int64_t taps = s.kernel_height * s.kernel_width;
  const int64_t gathered = taps == 1 && s.strided ? s.out_pixels * in : 0;
  return taps * (s.depthwise ? in : in * out) + gathered + 4096;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_CONVOLUTION_WORKSPACE_H_
