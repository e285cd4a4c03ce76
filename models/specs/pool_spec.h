// Pooling of images: maximum, average (of the pixels inside the image), the average of all of it,
// or its first pixel. What it costs; pool.cc runs it.
//
//   PoolSizes s;
//   s.name = "pool";  s.input = 7;  s.height = s.width = 28;  s.channels = 64;
//   s.kernel = 2;  s.stride = 2;                     // PoolKind::kMax: {784, 64} -> {196, 64}
//   LayerSpec layer = PoolSpec(s);
//   LayerSpec last = PoolSpec(GlobalAverage("pool", 7, 28, 28, 64));          // {1, 64}
//   LayerSpec token = PoolSpec(FirstRow("pool", 7, 197, 768));                // {1, 768}
//
// Keeps nothing; a maximum needs its input again, an average nothing.
#ifndef PIPELAB_MODELS_SPECS_POOL_SPEC_H_
#define PIPELAB_MODELS_SPECS_POOL_SPEC_H_

#include <cstdint>
#include <string>

#include "models/graph/layer_spec.h"

namespace pipelab {

inline constexpr char kPool[] = "pool";

enum class PoolKind : uint8_t { kMax, kAverage, kFirst };

struct PoolSizes {
  std::string name;
  int input = 0;
  int64_t height = 0, width = 0, channels = 0;  // of x
  PoolKind kind = PoolKind::kMax;
  int64_t kernel = 1, stride = 1, pad = 0;
  int64_t kernel_width = 0;  // 0: as `kernel`, which else is the height
  bool flat = false;         // a sample's pixels in one row: what a dense layer takes

  int64_t columns() const { return kernel_width > 0 ? kernel_width : kernel; }
  int64_t out_height() const { return (height + 2 * pad - kernel) / stride + 1; }
  int64_t out_width() const { return (width + 2 * pad - columns()) / stride + 1; }
};

PoolSizes GlobalAverage(const std::string& name, int input, int64_t height, int64_t width,
                        int64_t channels);
// The first of a sample's rows, such as a class token.
PoolSizes FirstRow(const std::string& name, int input, int64_t rows, int64_t channels);
LayerSpec PoolSpec(const PoolSizes& sizes);
PoolSizes PoolSizesOf(const LayerSpec& layer);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_SPECS_POOL_SPEC_H_
