#include "kernels/cpu/library_best.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "kernels/cpu/one_thread.h"

namespace pipelab {
namespace cpu {
namespace {

using dnnl::memory;
using Layout = memory::format_tag;

const dnnl::engine& CpuEngine() {
  static const dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

// Memory with numbers in it: zeros would be denormals' best case and nobody's real one.
memory Filled(const memory::desc& desc) {
  memory m(desc, CpuEngine());
  float* data = static_cast<float*>(m.get_data_handle());
  for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i) {
    data[i] = 0.1f * static_cast<float>(i % 17) - 0.8f;
  }
  return m;
}

double RunSeconds(const dnnl::primitive& primitive,
                  const std::unordered_map<int, memory>& arguments, Clock clock) {
  dnnl::stream stream(CpuEngine());
  return LeastSeconds(clock, [&] {
    primitive.execute(stream, arguments);
    stream.wait();
  });
}

memory::desc DenseFloats(const memory::dims& dims, Layout tag) {
  return memory::desc(dims, memory::data_type::f32, tag);
}

double ConvolutionSeconds(const ConvolutionShape& s, ConvolutionPass pass, Layout tag,
                          Clock clock) {
  const memory::desc x = DenseFloats({s.samples, s.in_channels, s.height, s.width}, tag);
  const memory::desc y =
      DenseFloats({s.samples, s.out_channels, s.out_height(), s.out_width()}, tag);
  const memory::dims w_dims =
      s.depthwise ? memory::dims{s.out_channels, 1, 1, s.kernel_height, s.kernel_width}
                  : memory::dims{s.out_channels, s.in_channels, s.kernel_height, s.kernel_width};
  const memory::desc w = DenseFloats(w_dims, Layout::any);
  const memory::dims stride = {s.stride_height, s.stride_width}, pad = {s.pad_height, s.pad_width};
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, x, w, y, stride, pad, pad}, CpuEngine());
  switch (pass) {
    case ConvolutionPass::kForward:
      return RunSeconds(dnnl::convolution_forward(forward),
                        {{DNNL_ARG_SRC, Filled(forward.src_desc())},
                         {DNNL_ARG_WEIGHTS, Filled(forward.weights_desc())},
                         {DNNL_ARG_DST, Filled(forward.dst_desc())}},
                        clock);
    case ConvolutionPass::kInputGradient: {
      const dnnl::convolution_backward_data::primitive_desc pd({direct, x, w, y, stride, pad, pad},
                                                               CpuEngine(), forward);
      return RunSeconds(dnnl::convolution_backward_data(pd),
                        {{DNNL_ARG_DIFF_DST, Filled(pd.diff_dst_desc())},
                         {DNNL_ARG_WEIGHTS, Filled(pd.weights_desc())},
                         {DNNL_ARG_DIFF_SRC, Filled(pd.diff_src_desc())}},
                        clock);
    }
    case ConvolutionPass::kWeightGradient: {
      const dnnl::convolution_backward_weights::primitive_desc pd(
          {direct, x, w, y, stride, pad, pad}, CpuEngine(), forward);
      return RunSeconds(dnnl::convolution_backward_weights(pd),
                        {{DNNL_ARG_SRC, Filled(pd.src_desc())},
                         {DNNL_ARG_DIFF_DST, Filled(pd.diff_dst_desc())},
                         {DNNL_ARG_DIFF_WEIGHTS, Filled(pd.diff_weights_desc())}},
                        clock);
    }
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double LeastSeconds(Clock clock, const std::function<void()>& body) {
  body();
  double least = std::numeric_limits<double>::infinity();
  const double start = clock();
  for (int i = 0; i < 5 || (clock() - start < 0.05 && i < 1000); ++i) {
    const double before = clock();
    body();
    // A clock that has not moved says nothing.
    if (const double seconds = clock() - before; seconds > 0) least = std::min(least, seconds);
  }
  return least;
}

double BestMatmulSeconds(const MatmulSize& size, Clock clock) {
  UseOneThread();
  const auto [m, k, n] = size;
  const memory::desc x = DenseFloats({m, k}, Layout::ab), y = DenseFloats({m, n}, Layout::ab);
  const dnnl::matmul::primitive_desc pd({x, DenseFloats({k, n}, Layout::any), y}, CpuEngine());
  const double matmul = RunSeconds(dnnl::matmul(pd),
                                   {{DNNL_ARG_SRC, Filled(x)},
                                    {DNNL_ARG_WEIGHTS, Filled(pd.weights_desc())},
                                    {DNNL_ARG_DST, Filled(y)}},
                                   clock);
  const memory a = Filled(x), b = Filled(DenseFloats({k, n}, Layout::ab)), c = Filled(y);
  const auto data = [](const memory& t) { return static_cast<float*>(t.get_data_handle()); };
  const double sgemm = LeastSeconds(clock, [&, m = m, k = k, n = n] {
    dnnl_sgemm('N', 'N', m, n, k, 1, data(a), k, data(b), n, 0, data(c), n);
  });
  return std::min(matmul, sgemm);
}

double BestBFloat16MatmulSeconds(const MatmulSize& size, Clock clock) {
  UseOneThread();
  const auto [m, k, n] = size;
  const auto halves = [](const memory::dims& dims, Layout tag) {
    return memory::desc(dims, memory::data_type::bf16, tag);
  };
  const memory::desc x = halves({m, k}, Layout::ab), y = DenseFloats({m, n}, Layout::ab);
  const dnnl::matmul::primitive_desc pd({x, halves({k, n}, Layout::any), y}, CpuEngine());
  // Bit patterns of floats near 1 are pairs of bfloat16 that are no denormals either.
  return RunSeconds(dnnl::matmul(pd),
                    {{DNNL_ARG_SRC, Filled(x)},
                     {DNNL_ARG_WEIGHTS, Filled(pd.weights_desc())},
                     {DNNL_ARG_DST, Filled(y)}},
                    clock);
}

double BestConvolutionSeconds(const ConvolutionShape& shape, ConvolutionPass pass, Clock clock) {
  UseOneThread();
  double best = std::numeric_limits<double>::infinity();
  for (Layout tag : {Layout::nhwc, Layout::nchw, Layout::any}) {
    best = std::min(best, ConvolutionSeconds(shape, pass, tag, clock));
  }
  return best;
}

}  // namespace cpu
}  // namespace pipelab
