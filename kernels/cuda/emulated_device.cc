// A device on the host: a list of work, done when somebody waits for it.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cuda/bf16_number.h"
#include "kernels/cuda/device.h"

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
    return half_ ? FromBf16(static_cast<uint16_t*>(data_)[i]) : static_cast<float*>(data_)[i];
  }
  void Set(int64_t i, float value) const {
    if (half_) {
      static_cast<uint16_t*>(data_)[i] = ToBf16(value);
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

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(int64_t memory_limit) : memory_limit_(memory_limit) {}
  ~EmulatedDevice() override {
    GiveBackBuffers();
    RunAll();
  }

  absl::string_view name() const override { return "emulated"; }
  void* stream() const override { return nullptr; }

  void Run(std::function<void()> work) override {
    std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
  }

  void* Take(int64_t bytes) override {
    if (failed()) return nullptr;
    if (held_->fetch_add(bytes) + bytes > memory_limit_) {
      held_->fetch_sub(bytes);
      Fail(absl::ResourceExhaustedError(
          absl::StrCat("the device has no ", bytes, " bytes left of ", memory_limit_)));
      return nullptr;
    }
    void* block = nullptr;  // to the byte: AddressSanitizer sees what a kernel reads behind it
    CHECK_EQ(posix_memalign(&block, 64, bytes), 0) << "out of memory";
    CountTaken(bytes);
    Run([block, bytes] { std::memset(block, 0xFF, bytes); });
    return block;
  }

  // Each device lets go when it comes to this place of its list; the last one frees.
  void Give(void* block, int64_t bytes, absl::Span<const Memory::Shared> others) override {
    CountTaken(-bytes);
    auto left = std::make_shared<std::atomic<int>>(1 + static_cast<int>(others.size()));
    const auto let_go = [held = held_, block, bytes, left] {
      if (left->fetch_sub(1) > 1) return;
      held->fetch_sub(bytes);
      std::memset(block, 0xFF, bytes);  // use after free shows
      std::free(block);
    };
    Run(let_go);
    for (const Memory::Shared& other : others) {
      static_cast<EmulatedDevice*>(other.get())->Run(let_go);
    }
  }

  void Clear(void* to, int64_t bytes) override {
    if (!failed()) Run([=] { std::memset(to, 0, bytes); });
  }
  void Copy(const void* from, void* to, int64_t bytes) override {
    if (!failed()) Run([=] { std::memmove(to, from, bytes); });
  }
  void FromHost(const void* from, void* to, int64_t bytes) override {
    if (failed()) return;
    RunAll();
    std::memcpy(to, from, bytes);
  }
  void ToHost(const void* from, void* to, int64_t bytes) override {
    if (failed()) return;
    RunAll();
    std::memcpy(to, from, bytes);
  }

  absl::Status Finish() override {
    RunAll();
    return status();
  }

  void Matmul(const MatmulCall& call) override {
    if (failed()) return;
    Run([call] {
      for (int64_t i = 0; i < call.batch; ++i) Product(call, i);
    });
  }
  bool Convolve(const ConvolutionCall&) override { return false; }  // it has no library

 private:
  std::string LaunchErrorName(int error) const override { return absl::StrCat("error ", error); }

  void RunAll() {
    std::lock_guard<std::recursive_mutex> running(run_mutex_);
    for (;;) {
      std::function<void()> work;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (work_.empty()) return;
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }

  const int64_t memory_limit_;
  // Outlives the device where another one has blocks of it.
  const std::shared_ptr<std::atomic<int64_t>> held_ = std::make_shared<std::atomic<int64_t>>(0);
  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
  std::recursive_mutex run_mutex_;
};

}  // namespace

std::shared_ptr<Device> MakeEmulatedDevice(int64_t memory_limit) {
  return std::make_shared<EmulatedDevice>(memory_limit);
}

}  // namespace gpu
}  // namespace pipelab
