// The paper side's rules for a kernel's scratch are those that backends charge. (That backends
// charge them is in kernels/cases/image_backend_test.cc.)
#include "gtest/gtest.h"
#include "kernels/cases/image_shapes.h"
#include "models/graph/convolution_workspace.h"

namespace pipelab {
namespace {

TEST(WorkspaceRules, Convolutions) {
  for (CaseSize size : {CaseSize::kSmall, CaseSize::kMedium, CaseSize::kLarge}) {
    for (const ConvolutionShape& s : ConvolutionShapes(size)) {
      ConvolutionWorkspaceSizes sizes;
      sizes.in_channels = s.in_channels;
      sizes.out_channels = s.out_channels;
      sizes.kernel_height = s.kernel_height;
      sizes.kernel_width = s.kernel_width;
      sizes.depthwise = s.depthwise;
      sizes.strided = s.stride_height > 1 || s.stride_width > 1;
      sizes.out_pixels = s.out_height() * s.out_width();
      EXPECT_EQ(ConvolutionWorkspaceFloats(sizes), ConvolutionWorkspaceFloats(s)) << ToString(s);
    }
  }
}

}  // namespace
}  // namespace pipelab
