#include "kernels/cpu/convolution.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "glog/logging.h"
#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/one_thread.h"

namespace pipelab {
namespace cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr int64_t kLine = 64;  // bytes

const dnnl::engine& Engine() {
  static const dnnl::engine* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

memory::desc Floats(const memory::dims& dims, Tag tag) {
  return memory::desc(dims, memory::data_type::f32, tag);
}

memory::dims WeightDims(const ConvolutionShape& s) {
  if (s.depthwise) return {s.out_channels, 1, 1, s.kernel_height, s.kernel_width};
  return {s.out_channels, s.in_channels, s.kernel_height, s.kernel_width};
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

int64_t RoundUpToLine(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// What a call of an implementation takes from the workspace.
template <class PrimitiveDesc>
int64_t WorkspaceBytes(const PrimitiveDesc& pd, const memory::desc& weights) {
  return RoundUpToLine(static_cast<int64_t>(weights.get_size())) +
         static_cast<int64_t>(pd.scratchpad_desc().get_size());
}

memory::desc WeightsOf(const dnnl::convolution_forward::primitive_desc& pd) {
  return pd.weights_desc();
}
memory::desc WeightsOf(const dnnl::convolution_backward_data::primitive_desc& pd) {
  return pd.weights_desc();
}
memory::desc WeightsOf(const dnnl::convolution_backward_weights::primitive_desc& pd) {
  return pd.diff_weights_desc();
}

// oneDNN 2.6 prefers its products of batches ("brgconv", "brdgmm") for channels last. Measured,
// what it has next ("jit") is 1.0 to 3.2 times as fast unless the kernel is 1 x 1.
bool IsSlow(absl::string_view implementation, const ConvolutionShape& s) {
  return absl::StartsWith(implementation, "br") && s.kernel_height * s.kernel_width > 1;
}

using Arguments = std::unordered_map<int, memory>;

}  // namespace

class ConvolutionPrimitive {
 public:
  ConvolutionPrimitive(const ConvolutionShape& s, ConvolutionPass pass, bool bias)
      : pass_(pass),
        stream_(Engine()),
        x_(Floats({s.samples, s.in_channels, s.height, s.width}, Tag::nhwc)),
        y_(Floats({s.samples, s.out_channels, s.out_height(), s.out_width()}, Tag::nhwc)),
        plain_(Floats(WeightDims(s), s.depthwise ? Tag::hwigo : Tag::hwio)) {
    const memory::dims stride = {s.stride_height, s.stride_width},
                       pad = {s.pad_height, s.pad_width};
    const memory::desc any = Floats(WeightDims(s), Tag::any);
    if (bias) bias_ = Floats({s.out_channels}, Tag::a);
    // The library walks its implementations with a pointer to the description: these must stay.
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::desc forward_desc(dnnl::prop_kind::forward_training, direct,
                                                       x_, any, bias_, y_, stride, pad, pad);
    const dnnl::convolution_backward_data::desc data_desc(direct, x_, any, y_, stride, pad, pad);
    const dnnl::convolution_backward_weights::desc weights_desc(direct, x_, any, y_, stride, pad,
                                                                pad);
    const dnnl::primitive_attr attributes = UserScratchpad();
    dnnl::convolution_forward::primitive_desc forward(forward_desc, attributes, Engine());
    if (pass == ConvolutionPass::kForward) {
      Choose<dnnl::convolution_forward>(&forward, s);
    } else if (pass == ConvolutionPass::kInputGradient) {
      dnnl::convolution_backward_data::primitive_desc pd(data_desc, attributes, Engine(), forward);
      Choose<dnnl::convolution_backward_data>(&pd, s);
    } else {
      dnnl::convolution_backward_weights::primitive_desc pd(weights_desc, attributes, Engine(),
                                                            forward);
      Choose<dnnl::convolution_backward_weights>(&pd, s);
    }
  }

  // Null where own loops are better than what the library has.
  bool empty() const { return !convolution_; }

  // x and y are the images or their gradients; w is in the plain layout. The pass says which of the
  // three is written, or added to.
  void Run(const float* x, const float* w, const float* b, const float* y, float* scratch,
           LibraryClock* clock) {
    const ScopedTimer timer(&clock->ns);
    char* const end_of_weights =
        reinterpret_cast<char*>(scratch) + RoundUpToLine(static_cast<int64_t>(blocked_.get_size()));
    const memory plain = At(plain_, w), scratchpad = At(scratchpad_, end_of_weights);
    const bool writes_weights = pass_ == ConvolutionPass::kWeightGradient;
    const memory weights = reorder_ ? At(blocked_, scratch) : plain;
    if (reorder_ && !writes_weights) Reorder(plain, weights, clock);
    Arguments arguments = {{DNNL_ARG_SCRATCHPAD, scratchpad}};
    switch (pass_) {
      case ConvolutionPass::kForward:
        arguments.insert({{DNNL_ARG_SRC, At(x_, x)}, {DNNL_ARG_WEIGHTS, weights}});
        arguments.insert({DNNL_ARG_DST, At(y_, y)});
        if (b != nullptr) arguments.insert({DNNL_ARG_BIAS, At(bias_, b)});
        break;
      case ConvolutionPass::kInputGradient:
        arguments.insert({{DNNL_ARG_DIFF_DST, At(y_, y)}, {DNNL_ARG_WEIGHTS, weights}});
        arguments.insert({DNNL_ARG_DIFF_SRC, At(x_, x)});
        break;
      case ConvolutionPass::kWeightGradient:
        arguments.insert({{DNNL_ARG_SRC, At(x_, x)}, {DNNL_ARG_DIFF_DST, At(y_, y)}});
        arguments.insert({DNNL_ARG_DIFF_WEIGHTS, weights});
        break;
    }
    convolution_.execute(stream_, arguments);
    if (writes_weights) Reorder(weights, plain, clock);
    stream_.wait();
  }

 private:
  // The first implementation, in the library's order of preference, that fits into the workspace.
  // The last one of every list is plain loops without scratch.
  template <class Primitive, class PrimitiveDesc>
  void Choose(PrimitiveDesc* pd, const ConvolutionShape& s) {
    const int64_t bytes = 4 * ConvolutionWorkspaceFloats(s);
    while (WorkspaceBytes(*pd, WeightsOf(*pd)) > bytes || IsSlow(pd->impl_info_str(), s)) {
      // Here the library has nothing fast but 3 x 3; its other kernels pad every group to a vector.
      if (s.depthwise && pass_ == ConvolutionPass::kWeightGradient) return;
      CHECK(pd->next_impl()) << "no convolution of oneDNN fits into " << bytes << " bytes";
    }
    blocked_ = WeightsOf(*pd);
    scratchpad_ = pd->scratchpad_desc();
    convolution_ = Primitive(*pd);
    if (pass_ == ConvolutionPass::kWeightGradient) {
      dnnl::post_ops add;
      add.append_sum(1.0f);
      dnnl::primitive_attr attributes;
      attributes.set_post_ops(add);
      reorder_ = MakeReorder(blocked_, plain_, attributes);
    } else if (blocked_ != plain_) {
      reorder_ = MakeReorder(plain_, blocked_, dnnl::primitive_attr());
    }
  }

  dnnl::reorder MakeReorder(const memory::desc& from, const memory::desc& to,
                            const dnnl::primitive_attr& attributes) {
    const dnnl::reorder::primitive_desc pd(Engine(), from, Engine(), to, attributes);
    return dnnl::reorder(pd);
  }

  void Reorder(const memory& from, const memory& to, LibraryClock* clock) {
    const ScopedTimer timer(&clock->reorder_ns);
    ++clock->reorders;
    reorder_.execute(stream_, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  memory At(const memory::desc& desc, const void* data) {
    return memory(desc, Engine(), const_cast<void*>(data));
  }

  const ConvolutionPass pass_;
  dnnl::stream stream_;
  memory::desc x_, y_, plain_, bias_, blocked_, scratchpad_;
  dnnl::primitive convolution_, reorder_;
};

ConvolutionCache::ConvolutionCache(LibraryClock* clock) : clock_(clock) {}
ConvolutionCache::~ConvolutionCache() = default;

ConvolutionPrimitive& ConvolutionCache::Find(const ConvolutionShape& s, ConvolutionPass pass,
                                             bool bias) {
  UseOneThread();
  const Key key = {s.samples,      s.height,
                   s.width,        s.in_channels,
                   s.out_channels, s.kernel_height,
                   s.kernel_width, s.stride_height,
                   s.stride_width, s.pad_height,
                   s.pad_width,    s.depthwise,
                   bias,           static_cast<int64_t>(pass)};
  std::unique_ptr<ConvolutionPrimitive>& primitive = primitives_[key];
  if (primitive == nullptr) primitive = std::make_unique<ConvolutionPrimitive>(s, pass, bias);
  return *primitive;
}

void ConvolutionCache::Forward(const ConvolutionShape& shape, const float* x, const float* w,
                               const float* b, float* scratch, float* y) {
  Find(shape, ConvolutionPass::kForward, b != nullptr).Run(x, w, b, y, scratch, clock_);
}

void ConvolutionCache::InputGradient(const ConvolutionShape& shape, const float* dy, const float* w,
                                     float* scratch, float* dx) {
  Find(shape, ConvolutionPass::kInputGradient, false).Run(dx, w, nullptr, dy, scratch, clock_);
}

void ConvolutionCache::WeightGradient(const ConvolutionShape& shape, const float* x,
                                      const float* dy, float* scratch, float* dw) {
  ConvolutionPrimitive& primitive = Find(shape, ConvolutionPass::kWeightGradient, false);
  if (primitive.empty()) {
    DepthwiseWeightGradient(shape, x, dy, dw);
  } else {
    primitive.Run(x, dw, nullptr, dy, scratch, clock_);
  }
}

}  // namespace cpu
}  // namespace pipelab
