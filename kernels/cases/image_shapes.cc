#include "kernels/cases/image_shapes.h"

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

struct Image {
  int64_t samples, height, width, channels;
};
struct Kernel {
  int64_t height, width, stride_height = 1, stride_width = 1, pad_height = 0, pad_width = 0;
};

template <class ImageShape>
ImageShape WithKernel(const Image& x, const Kernel& k) {
  ImageShape s;
  s.samples = x.samples;
  s.height = x.height;
  s.width = x.width;
  s.kernel_height = k.height;
  s.kernel_width = k.width;
  s.stride_height = k.stride_height;
  s.stride_width = k.stride_width;
  s.pad_height = k.pad_height;
  s.pad_width = k.pad_width;
  return s;
}

ConvolutionShape Plain(const Image& x, int64_t out_channels, const Kernel& k) {
  ConvolutionShape s = WithKernel<ConvolutionShape>(x, k);
  s.in_channels = x.channels;
  s.out_channels = out_channels;
  return s;
}

ConvolutionShape Depthwise(const Image& x, const Kernel& k) {
  ConvolutionShape s = Plain(x, x.channels, k);
  s.depthwise = true;
  return s;
}

PoolingShape Pool(const Image& x, const Kernel& k, bool count_padding = false) {
  PoolingShape s = WithKernel<PoolingShape>(x, k);
  s.channels = x.channels;
  s.count_padding = count_padding;
  return s;
}

constexpr Kernel k1x1 = {1, 1}, k1x1Strided = {1, 1, 2, 2}, k3x3 = {3, 3, 1, 1, 1, 1},
                 k3x3Strided = {3, 3, 2, 2, 1, 1}, k1x7 = {1, 7, 1, 1, 0, 3},
                 k7x1 = {7, 1, 1, 1, 3, 0}, k1x7Strided = {1, 7, 1, 2, 0, 3},
                 k7x1Strided = {7, 1, 2, 1, 3, 0}, k7x7Strided = {7, 7, 2, 2, 3, 3}, k5x5 = {5, 5};

template <class ImageShape>
std::string KernelToString(const ImageShape& s) {
  return absl::StrCat("/", s.kernel_height, "x", s.kernel_width, "/stride", s.stride_height, "x",
                      s.stride_width, "/pad", s.pad_height, "x", s.pad_width);
}

}  // namespace

std::vector<ConvolutionShape> ConvolutionShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {Plain({1, 1, 1, 1}, 1, k1x1),         Plain({2, 5, 4, 3}, 2, k3x3),
              Plain({1, 6, 5, 2}, 3, k3x3Strided),  Plain({1, 4, 9, 2}, 2, k1x7),
              Plain({1, 9, 4, 2}, 3, k7x1),         Plain({1, 5, 8, 3}, 2, k1x7Strided),
              Plain({1, 8, 5, 2}, 2, k7x1Strided),  Plain({2, 5, 5, 3}, 4, k1x1Strided),
              Plain({1, 6, 6, 2}, 2, k5x5),         Depthwise({2, 5, 5, 3}, k3x3),
              Depthwise({1, 6, 7, 2}, k3x3Strided), Depthwise({1, 6, 9, 2}, k5x5)};
    case CaseSize::kMedium:  // channels off and on the vectors; one image and several
      return {Plain({2, 14, 14, 20}, 36, k3x3),        Plain({2, 14, 15, 33}, 17, k3x3Strided),
              Plain({3, 9, 10, 64}, 16, k1x1),         Plain({3, 9, 10, 48}, 70, k1x1Strided),
              Plain({2, 14, 14, 24}, 24, k1x7),        Plain({2, 14, 14, 24}, 32, k7x1Strided),
              Plain({1, 14, 14, 16}, 16, k1x7Strided), Plain({2, 17, 17, 3}, 64, k7x7Strided),
              Plain({4, 16, 16, 1}, 16, k3x3Strided),  Depthwise({2, 14, 14, 50}, k3x3),
              Depthwise({2, 15, 14, 32}, k5x5),        Depthwise({2, 14, 14, 33}, k7x1)};
    case CaseSize::kLarge:  // micro-batches of small AmoebaNets and of a ResNet
      return {Plain({16, 28, 28, 1}, 32, k3x3Strided),  Plain({16, 28, 28, 32}, 32, k3x3),
              Plain({16, 14, 14, 64}, 64, k3x3),        Plain({16, 14, 14, 64}, 128, k3x3Strided),
              Plain({16, 7, 7, 256}, 256, k3x3),        Plain({16, 14, 14, 16}, 16, k1x7),
              Plain({16, 14, 14, 16}, 16, k7x1),        Plain({16, 7, 7, 64}, 64, k1x7),
              Plain({16, 14, 14, 32}, 32, k7x1Strided), Plain({16, 14, 14, 64}, 16, k1x1),
              Plain({16, 14, 14, 128}, 128, k1x1),      Plain({16, 14, 14, 128}, 128, k1x1Strided),
              Plain({4, 56, 56, 64}, 64, k3x3),         Plain({2, 224, 224, 3}, 64, k7x7Strided),
              Depthwise({16, 14, 14, 64}, k3x3)};
  }
  return {};
}

std::vector<PoolingShape> PoolingShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {Pool({1, 1, 1, 1}, k1x1),         Pool({2, 5, 4, 3}, k3x3),
              Pool({1, 6, 5, 2}, k3x3Strided),  Pool({1, 6, 5, 2}, k3x3Strided, true),
              Pool({2, 5, 5, 2}, {2, 2, 2, 2}), Pool({1, 4, 5, 3}, {2, 2}),
              Pool({2, 3, 4, 5}, {3, 4})};  // global
    case CaseSize::kMedium:
      return {Pool({2, 9, 10, 37}, k3x3), Pool({2, 9, 10, 300}, k3x3Strided),
              Pool({2, 9, 10, 16}, k3x3, true), Pool({3, 9, 10, 64}, {2, 2, 2, 2}),
              Pool({3, 7, 7, 65}, {7, 7})};
    case CaseSize::kLarge:
      return {Pool({16, 28, 28, 64}, k3x3), Pool({16, 28, 28, 64}, k3x3Strided),
              Pool({16, 28, 28, 64}, {2, 2, 2, 2}), Pool({16, 14, 14, 20}, k3x3),
              Pool({16, 7, 7, 256}, {7, 7})};
  }
  return {};
}

std::vector<RowsSize> BatchNormShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {{4, 5}, {9, 17}, {40, 3}};
    case CaseSize::kMedium:  // rows past a part of a sum, columns past a block
      return {{67, 256}, {1000, 20}, {100, 300}};
    case CaseSize::kLarge:
      return {{16 * 28 * 28, 32}, {16 * 14 * 14, 64}, {16 * 7 * 7, 256}};
  }
  return {};
}

std::vector<BagShape> BagShapes(CaseSize size) {
  switch (size) {
    case CaseSize::kSmall:
      return {
          {1, 1, 1, 1, BagMode::kSum}, {3, 4, 5, 3, BagMode::kSum}, {2, 5, 7, 4, BagMode::kMean}};
    case CaseSize::kMedium:
      return {{20, 100, 50, 64, BagMode::kSum}, {9, 33, 1000, 17, BagMode::kMean}};
    case CaseSize::kLarge:  // GraphPipe's DLRM: bags of 100, width 64
      return {{256, 100, 100000, 64, BagMode::kSum}};
  }
  return {};
}

std::string ToString(const ConvolutionShape& s) {
  return absl::StrCat(s.samples, "x", s.height, "x", s.width, "x", s.in_channels,
                      s.depthwise ? "/depthwise" : absl::StrCat("->", s.out_channels),
                      KernelToString(s));
}

std::string ToString(const PoolingShape& s) {
  return absl::StrCat(s.samples, "x", s.height, "x", s.width, "x", s.channels, KernelToString(s),
                      s.count_padding ? "/padding" : "");
}

}  // namespace pipelab
