// A device on the host: a list of work, done when somebody waits for it.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/device.h"
#include "kernels/tensor/bfloat16.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {
namespace {

// kernels/cuda/elementwise.cu.cc has the same for tensors.
float GeluOf(float x) {
  const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
  return x / (1.0f + std::exp(-2.0f * u));
}

float GeluSlopeOf(float x) {
  const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
  const float gate = 1.0f / (1.0f + std::exp(-2.0f * u)), change = gate * (1.0f - gate);
  const float slope = 2.0f * 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
  return gate + (change == 0.0f ? 0.0f : x * change * slope);
}

// A factor's or result's elements, float32 or bfloat16.
class Numbers {
 public:
  Numbers(const void* data, bool half) : data_(const_cast<void*>(data)), half_(half) {}
  bool empty() const { return data_ == nullptr; }
  float Get(int64_t i) const {
    return half_ ? static_cast<BFloat16*>(data_)[i] : static_cast<float*>(data_)[i];
  }
  void Set(int64_t i, float value) const {
    if (half_) {
      static_cast<BFloat16*>(data_)[i] = value;
    } else {
      static_cast<float*>(data_)[i] = value;
    }
  }

 private:
  void* const data_;
  const bool half_;
};

// One product, as MatmulCall says.
void Product(const MatmulCall& call, int64_t index) {
  const bool half_factors = call.type != MatmulCall::Type::kFloat32;
  const bool half = call.type == MatmulCall::Type::kBFloat16;
  const Numbers a(call.a, half_factors), b(call.b, half_factors);
  const Numbers bias(call.bias, half), c(call.c, half), aux(call.aux, half);
  const int64_t at_a = index * call.step_a, at_b = index * call.step_b, at_c = index * call.step_c;
  for (int64_t i = 0; i < call.m; ++i) {
    for (int64_t j = 0; j < call.n; ++j) {
      float sum = 0.0f;
      for (int64_t l = 0; l < call.k; ++l) {
        sum += a.Get(at_a + (call.transpose_a ? l * call.lda() + i : i * call.lda() + l)) *
               b.Get(at_b + (call.transpose_b ? j * call.ldb() + l : l * call.ldb() + j));
      }
      sum *= static_cast<float>(call.scale);
      const int64_t place = at_c + i * call.ldc() + j, in_aux = i * call.n + j;
      switch (call.then) {
        case MatmulCall::Then::kNothing:
          c.Set(place, call.add ? c.Get(place) + sum : sum);
          break;
        case MatmulCall::Then::kBias:
          c.Set(place, sum + bias.Get(j));
          break;
        case MatmulCall::Then::kBiasGelu: {
          const float h = bias.empty() ? sum : sum + bias.Get(j);
          aux.Set(in_aux, h);
          c.Set(place, GeluOf(h));
          break;
        }
        case MatmulCall::Then::kGeluGradient:
          c.Set(place, sum * GeluSlopeOf(aux.Get(in_aux)));
          break;
      }
    }
  }
}

// Calls visit(x, w, y) with the places of what is multiplied, w as the library has it.
template <class Visit>
void ForEachProduct(const ConvolutionShape& s, const Visit& visit) {
  const int64_t taps = s.kernel_height * s.kernel_width, pixels = s.out_height() * s.out_width();
  for (int64_t at = 0; at < s.samples * pixels * taps; ++at) {
    const int64_t tap = at % taps, out = at / taps;
    const int64_t row = out / s.out_width() % s.out_height() * s.stride_height - s.pad_height +
                        tap / s.kernel_width;
    const int64_t column =
        out % s.out_width() * s.stride_width - s.pad_width + tap % s.kernel_width;
    if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
    const int64_t in = (out / pixels * s.height + row) * s.width + column;
    for (int64_t o = 0; o < s.out_channels; ++o) {
      for (int64_t c = 0; c < s.in_channels; ++c) {
        visit(in * s.in_channels + c, (o * taps + tap) * s.in_channels + c,
              out * s.out_channels + o);
      }
    }
  }
}

// As a library does it: sums in float32, rounded once, and workspace written over.
void RunConvolution(const ConvolutionCall& call) {
  const ConvolutionShape& s = call.shape;
  const Numbers x(call.x, call.bfloat16), w(call.w, call.bfloat16), y(call.y, call.bfloat16);
  std::memset(call.workspace, 0xFF, call.workspace_bytes);
  const int64_t width = call.bfloat16 ? 2 : 4;
  std::vector<float> sums;
  const auto write = [&sums](const Numbers& to) {
    for (size_t i = 0; i < sums.size(); ++i) to.Set(static_cast<int64_t>(i), sums[i]);
  };
  switch (call.pass) {
    case ConvolutionPass::kForward:
      sums.resize(call.y_bytes() / width);
      ForEachProduct(s, [&](int64_t i, int64_t j, int64_t k) { sums[k] += x.Get(i) * w.Get(j); });
      write(y);
      break;
    case ConvolutionPass::kInputGradient:
      sums.resize(call.x_bytes() / width);
      ForEachProduct(s, [&](int64_t i, int64_t j, int64_t k) { sums[i] += y.Get(k) * w.Get(j); });
      write(x);
      break;
    case ConvolutionPass::kWeightGradient:
      sums.resize(s.kernel_height * s.kernel_width * s.in_channels * s.out_channels);
      ForEachProduct(s, [&](int64_t i, int64_t j, int64_t k) { sums[j] += x.Get(i) * y.Get(k); });
      write(w);
      break;
  }
}

// Memory of the host, which a test may limit.
class HostBlocks final : public BlockStore {
 public:
  HostBlocks(bool keeps, int64_t limit) : BlockStore(keeps), limit_(limit) {}
  ~HostBlocks() override { FreeKept(); }

  absl::StatusOr<void*> New(int64_t bytes) {
    if (held_.fetch_add(bytes) + bytes > limit_) {
      held_.fetch_sub(bytes);
      return absl::ResourceExhaustedError(
          absl::StrCat("the device has no ", bytes, " bytes left of ", limit_));
    }
    void* data = nullptr;  // to the byte: AddressSanitizer sees what a kernel reads behind it
    CHECK_EQ(posix_memalign(&data, 64, bytes), 0) << "out of memory";
    return data;
  }
  void Free(MemoryBlock block, Fences) override {
    held_.fetch_sub(block.bytes);
    Spoil(block);
    std::free(block.data);
  }

 private:
  void Spoil(const MemoryBlock& block) override { std::memset(block.data, 0xFF, block.bytes); }

  const int64_t limit_;
  std::atomic<int64_t> held_{0};
};

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(const EmulatedOptions& options, std::shared_ptr<HostBlocks> blocks)
      : Device(options.graphs ? Issuing::kGraphs : Issuing::kOnWait, blocks, options.graph_limits),
        convolves_(options.convolution_library),
        fault_(options.fault),
        backwards_(options.backwards),
        blocks_(std::move(blocks)) {}
  ~EmulatedDevice() override { GiveBackBuffers(); }

  absl::string_view name() const override { return "emulated"; }

  void FromHost(const void* from, void* to, int64_t bytes) override {
    if (failed()) return;
    const auto lock = IssueAndLock();
    std::memcpy(to, from, bytes);
  }
  void ToHost(const void* from, void* to, int64_t bytes) override { FromHost(from, to, bytes); }

  absl::Status Finish() override {
    Issue();
    return status();
  }

  void Matmul(const MatmulCall& call) override { Record(WorkKind::kProduct, "a product", call); }
  bool Convolve(const ConvolutionCall& call) override {
    if (convolves_) Record(WorkKind::kConvolution, "a convolution", call);
    return convolves_;
  }

 private:
  // A list of its own, as it was when it was made or changed.
  class ListGraph final : public Graph {
   public:
    ListGraph(const WorkList& list, EmulatedDevice* device) : list_(list), device_(device) {}

    bool Change(int i, const Work& work) override {
      const Work mine = list_[i];
      if (!mine.can_change()) return false;
      std::memcpy(mine.arguments, work.arguments, mine.bytes);
      return true;
    }
    absl::Status Launch() override {
      for (int i = 0; i < list_.size(); ++i) PIPELAB_RETURN_IF_ERROR(device_->Do(list_[i]));
      return absl::OkStatus();
    }

   private:
    const WorkList list_;
    EmulatedDevice* const device_;
  };

  absl::StatusOr<void*> NewBlock(int64_t bytes) override { return blocks_->New(bytes); }
  void FreeOwn(const MemoryBlock& block) override { blocks_->Free(block, {}); }
  // What is issued is done.
  std::unique_ptr<Fence> MakeFence() override { return nullptr; }
  void Wait() override {}
  bool spoils() const override { return true; }

  std::unique_ptr<Graph> MakeGraph(const WorkList& list) override {
    return std::make_unique<ListGraph>(list, this);
  }

  absl::Status Do(const Work& work) override {
    if (fault_) PIPELAB_RETURN_IF_ERROR(fault_(work.name));
    switch (work.kind) {
      case WorkKind::kKernel: {
        KernelLaunch launch;
        launch.backwards = backwards_;
        work.entry(work.arguments, &launch);
        break;
      }
      case WorkKind::kCopy: {
        const auto& copy = *static_cast<const CopyWork*>(work.arguments);
        std::memmove(copy.to, copy.from, copy.bytes);
        break;
      }
      case WorkKind::kFill: {
        const auto& fill = *static_cast<const FillWork*>(work.arguments);
        std::memset(fill.to, static_cast<int>(fill.value), fill.bytes);
        break;
      }
      case WorkKind::kProduct: {
        const auto& call = *static_cast<const MatmulCall*>(work.arguments);
        for (int64_t i = 0; i < call.batch; ++i) Product(call, i);
        break;
      }
      case WorkKind::kConvolution:
        RunConvolution(*static_cast<const ConvolutionCall*>(work.arguments));
        break;
    }
    return absl::OkStatus();
  }

  const bool convolves_;
  const std::function<absl::Status(absl::string_view)> fault_;
  const bool backwards_;
  const std::shared_ptr<HostBlocks> blocks_;
};

}  // namespace

std::shared_ptr<Device> MakeEmulatedDevice(const EmulatedOptions& options) {
  return std::make_shared<EmulatedDevice>(
      options, std::make_shared<HostBlocks>(options.graphs, options.memory_limit));
}

}  // namespace gpu
}  // namespace pipelab
