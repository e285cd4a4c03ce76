#include "experiments/calibration/kernel_probe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "experiments/calibration/probe_list.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// The same numbers over and over.
void FillNormal(const Tensor& t) {
  static const auto* const normal = [] {
    auto* numbers = new std::vector<float>;
    const CounterRng rng(/*seed=*/1, "calibration/normal");
    for (int i = 0; i < 4096; ++i) numbers->push_back(rng.Normal(i));
    return numbers;
  }();
  const absl::Span<float> to = t.f32();
  for (size_t i = 0; i < to.size(); i += normal->size()) {
    std::copy_n(normal->begin(), std::min(normal->size(), to.size() - i), to.begin() + i);
  }
}

class Probes {
 public:
  explicit Probes(ProbeList* list) : list_(*list) {}

  void Products() {
    for (int64_t m : Sizes({64, 128, 256, 512, 1024, 2048})) {
      for (int64_t k : Sizes({64, 128, 256, 512})) {
        for (int64_t n : Sizes({64, 128, 256, 512})) {
          // Layers widen and narrow by up to four; wider ones are for larger machines than a core.
          if (n > 4 * k || k > 4 * n || k * n > (int64_t{1} << 17)) continue;
          Product(m, k, n);
        }
      }
    }
  }

  // As in networks: where images halve, channels double; most convolutions are pointwise, between
  // widths and a quarter of them, and the others are of the narrow ones.
  void Convolutions() {
    constexpr int64_t kSideTimesChannels = 1024;
    for (int64_t samples : Sizes({1, 4, 32})) {
      for (int64_t side : Sizes({4, 8, 16})) {
        const int64_t wide = kSideTimesChannels / side, narrow = wide / 4;
        for (int64_t channels : Sizes({narrow, wide / 2, wide, 2 * wide})) {
          Convolution(samples, side, channels, channels, {1, 1, 1});
        }
        for (int64_t channels : Sizes({wide, 2 * wide})) {
          Convolution(samples, side, channels, channels / 4, {1, 1, 1});
          Convolution(samples, side, channels / 4, channels, {1, 1, 1});
        }
        for (int64_t channels : Sizes({narrow, wide / 2})) {
          for (const Window& window : {Window{3, 3, 1}, {1, 7, 1}, {7, 1, 1}, {3, 3, 2}}) {
            Convolution(samples, side, channels, channels, window);
          }
        }
      }
    }
  }

  void Attentions() {
    for (int64_t samples : Sizes({1, 8})) {
      for (int64_t tokens : Sizes({32, 64, 128})) {
        for (int64_t heads : Sizes({2, 4})) {
          for (int64_t head_size : {64}) {  // of most networks
            AttentionShape s;
            s.samples = samples;
            s.tokens = tokens;
            s.heads = heads;
            s.head_size = head_size;
            for (bool causal : {true, false}) {
              s.causal = causal;
              Attention(s);
            }
          }
        }
      }
    }
  }

 private:
  struct Window {
    int64_t height, width, stride;
  };

  std::vector<int64_t> Sizes(std::vector<int64_t> all) const { return list_.Sizes(std::move(all)); }

  void Add(std::string name, Operation operation, int64_t numbers, ProbeList::Prepare prepare,
           int64_t copied = 0) {
    list_.Add(std::move(name), operation, numbers, std::move(prepare), copied);
  }

  // The input of the weight gradient is hot as well: it is a norm or an activation, computed again.
  void Product(int64_t m, int64_t k, int64_t n) {
    const std::string shape = absl::StrCat("/", m, "x", k, "x", n);
    const int64_t numbers = m * k + k * n + m * n;
    Add("Linear" + shape, MatmulOperation(m, n, k), numbers, [m, k, n](ProbeTensors* t) {
      const Tensor x = t->Hot({m, k}), w = t->Cold({k, n}), b = t->Cold({n});
      return [=, be = t->backend()] { be->Linear(x, w, b, be->Allocate({m, n})); };
    });
    Add("LinearInputGradient" + shape, MatmulOperation(m, k, n), numbers,
        [m, k, n](ProbeTensors* t) {
          const Tensor dy = t->Hot({m, n}), w = t->Cold({k, n});
          return [=, be = t->backend()] { be->LinearInputGradient(dy, w, be->Allocate({m, k})); };
        });
    Add("LinearWeightGradient" + shape, MatmulOperation(k, n, m), numbers,
        [m, k, n](ProbeTensors* t) {
          const Tensor x = t->Hot({m, k}), dy = t->Hot({m, n}), dw = t->Cold({k, n});
          const Tensor db = t->Cold({n});
          return [=, be = t->backend()] { be->LinearWeightGradient(x, dy, dw, db); };
        });
  }

  void Convolution(int64_t samples, int64_t side, int64_t in, int64_t out, const Window& window) {
    ConvolutionShape s;
    s.samples = samples;
    s.height = s.width = side;
    s.in_channels = in;
    s.out_channels = out;
    s.kernel_height = window.height;
    s.kernel_width = window.width;
    s.stride_height = s.stride_width = window.stride;
    s.pad_height = (window.height - 1) / 2;
    s.pad_width = (window.width - 1) / 2;
    Convolution(s);
  }

  // The input of the weight gradient is hot as well: it is an activation, computed again.
  void Convolution(const ConvolutionShape& s) {
    const Shape in = {s.samples, s.height, s.width, s.in_channels};
    const Shape out = {s.samples, s.out_height(), s.out_width(), s.out_channels};
    const Shape taps = {s.kernel_height, s.kernel_width, s.in_channels, s.out_channels};
    const std::string shape = absl::StrCat(
        "/", s.samples, "x", s.height, "x", s.width, "x", s.in_channels, "->", s.out_channels, "/",
        s.kernel_height, "x", s.kernel_width, "/stride", s.stride_height);
    const int64_t rows = NumElements(out) / s.out_channels, n = s.out_channels;
    const int64_t k = s.kernel_height * s.kernel_width * s.in_channels;
    const int64_t numbers = NumElements(in) + NumElements(out) + k * n;
    Add(
        "Convolution" + shape, ConvolutionOperation(rows, n, k, numbers), numbers,
        [=](ProbeTensors* t) {
          const Tensor x = t->Hot(in), w = t->Cold(taps);
          return [=, be = t->backend()] {
            be->convolution().Forward(s, x, w, Tensor(), be->Allocate(out));
          };
        },
        2 * k * n);
    Add(
        "ConvolutionInputGradient" + shape, ConvolutionOperation(rows, k, n, numbers), numbers,
        [=](ProbeTensors* t) {
          const Tensor dy = t->Hot(out), w = t->Cold(taps);
          return [=, be = t->backend()] {
            be->convolution().InputGradient(s, dy, w, be->Allocate(in));
          };
        },
        2 * k * n);
    Add(
        "ConvolutionWeightGradient" + shape, ConvolutionOperation(k, n, rows, numbers), numbers,
        [=](ProbeTensors* t) {
          const Tensor x = t->Hot(in), dy = t->Hot(out), dw = t->Cold(taps);
          return
              [=, be = t->backend()] { be->convolution().WeightGradient(s, x, dy, dw, Tensor()); };
        },
        3 * k * n);
  }

  void Attention(const AttentionShape& s) {
    const int64_t m = s.samples * s.tokens, width = s.heads * s.head_size;
    const std::string shape = absl::StrCat("/", s.samples, "x", s.tokens, "/", s.heads, "x",
                                           s.head_size, s.causal ? "/causal" : "");
    const Flops scores = MatmulFlops(s.samples, s.tokens * s.tokens, width);
    const AttentionSize size = {s.tokens, s.samples * s.heads, s.head_size};
    Add("Attention" + shape, AttentionOperation(2.0 * scores, 4 * m * width, size), 4 * m * width,
        [=](ProbeTensors* t) {
          const Tensor qkv = t->Hot({m, 3 * width});
          const Tensor lse = t->Cold({m, s.heads});
          return [=, be = t->backend()] {
            be->attention().Forward(s, qkv, be->Allocate({m, width}), lse);
          };
        });
    Add("AttentionGradient" + shape, AttentionGradientOperation(5.0 * scores, 8 * m * width, size),
        8 * m * width, [=](ProbeTensors* t) {
          const Tensor qkv = t->Cold({m, 3 * width}), lse = t->Cold({m, s.heads});
          const Tensor out = t->Cold({m, width}), dout = t->Hot({m, width});

          t->backend()->attention().Forward(s, qkv, out, lse);
          return [=, be = t->backend()] {
            be->attention().Gradient(s, dout, qkv, out, lse, be->Allocate({m, 3 * width}));
          };
        });
  }

  ProbeList& list_;
};

}  // namespace

Tensor ProbeTensors::Cold(Shape shape) {
  Tensor t = backend_->Allocate(std::move(shape));
  FillNormal(t);
  return t;
}

Tensor ProbeTensors::Hot(Shape shape) {
  hot_.push_back(Cold(std::move(shape)));
  return hot_.back();
}

void ProbeTensors::WriteHot() {
  for (const Tensor& t : hot_) FillNormal(t);
}

std::vector<KernelProbe> KernelProbes(ProbeSizes sizes) {
  ProbeList list(sizes);
  Probes probes(&list);
  probes.Products();
  probes.Convolutions();
  probes.Attentions();
  AddPasses(&list);
  return list.Take();
}

}  // namespace pipelab
