// A convolution of images with what stands around it: y = norm(conv(relu(x)) + b), each of relu,
// norm and b there or not. What it costs; image_conv.cc runs it.
//
//   ImageConvSizes s;
//   s.name = "cell1/reduce1";  s.input = 7;  s.height = s.width = 28;  s.in = 64;  s.out = 128;
//   s.relu = s.norm = true;                      // the unit of AmoebaNet's cells
//   LayerSpec layer = ImageConvSpec(s);          // 1 x 1; {784, 64} -> {784, 128}
//
// Images are rows of channels: a sample is [height * width, channels]. The ReLU is in front, so a
// network of conv, norm, ReLU chains these layers too. Kernels are odd; zeros around the image
// keep its size but for the stride. Without an input it reads the data's image.
//
// relu(x) is computed again for the weight gradient, so besides x it keeps the convolution's output
// and the statistics, and without a norm nothing.
#ifndef PIPELAB_MODELS_SPECS_IMAGE_CONV_SPEC_H_
#define PIPELAB_MODELS_SPECS_IMAGE_CONV_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kImageConv[] = "image_conv";

struct ImageConvSizes {
  std::string name;
  int input = -1;                 // index of the layer before; -1: the data's image
  int64_t height = 0, width = 0;  // of x
  int64_t in = 0, out = 0;        // channels
  int64_t kernel_height = 1, kernel_width = 1;
  int64_t stride_height = 1, stride_width = 1;
  bool relu = false, norm = false, bias = false;
  double stddev = 0;  // 0: sqrt(2 / products of an output) (He et al. 2015)

  int64_t out_height() const { return (height - 1) / stride_height + 1; }
  int64_t out_width() const { return (width - 1) / stride_width + 1; }
};

// Parameters: w [kernel height, kernel width, in, out]; b [out] where there is one; gamma and beta
// [out] where there is a norm.
LayerSpec ImageConvSpec(const ImageConvSizes& sizes);
// What it was made of, but for the name and the start.
ImageConvSizes ImageConvSizesOf(const LayerSpec& layer);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_IMAGE_CONV_SPEC_H_
