#include "kernels/cuda/case_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/arena.h"
#include "kernels/tensor/host_values.h"

namespace pipelab {
namespace {

constexpr uint64_t kSeed = 11;

Tensor ToDevice(const Tensor& x, DataType type, Arena* arena, int64_t shift) {
  const Tensor to = arena->Allocate(type, {x.size() + shift}, MemoryKind::kActivation)
                        .Rows(shift, shift + x.size())
                        .Reshape(x.shape());
  if (x.type() == DataType::kInt32) {
    SetHostIds(to, x.i32());
  } else {
    SetHostValues(to, x.f32());
  }
  return to;
}

// All tensors of the case after its run on the device, on the host again.
struct Outcome {
  absl::Status status;
  std::vector<std::vector<float>> values;  // none of ids
  bool wrote_ids = false;
};

Outcome RunThere(const KernelCase& c, const std::shared_ptr<gpu::Device>& device,
                 const std::vector<Tensor>& start, int64_t shift) {
  Arena arena(device);
  Outcome outcome;
  {
    const std::unique_ptr<Backend> backend = MakeCudaBackend(&arena, device, c.activations);
    std::vector<Tensor> tensors;
    for (size_t t = 0; t < start.size(); ++t) {
      const DataType type = c.IsBFloat16(t) ? DataType::kBFloat16 : start[t].type();
      tensors.push_back(ToDevice(start[t], type, &arena, shift));
    }
    c.run(backend.get(), tensors);
    outcome.status = backend->Finish();
    for (size_t t = 0; t < tensors.size(); ++t) {
      const bool ids = tensors[t].type() == DataType::kInt32;
      outcome.values.push_back(ids ? std::vector<float>() : HostValues(tensors[t]));
      if (ids) {
        const std::vector<int32_t> now = HostIds(tensors[t]);
        outcome.wrote_ids |= !std::equal(now.begin(), now.end(), start[t].i32().begin());
      }
    }
  }
  return outcome;
}

}  // namespace

std::vector<KernelCase> CheckedCases(bool small) {
  std::vector<KernelCase> cases;
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
    for (const CaseSize size : {CaseSize::kSmall, CaseSize::kMedium}) {
      if (small && size != CaseSize::kSmall) continue;
      for (KernelCase& c : KernelCases(size, type)) cases.push_back(std::move(c));
    }
  }
  return cases;
}

std::string BitsOnDevice(const KernelCase& c, const std::shared_ptr<gpu::Device>& device,
                         int64_t shift) {
  Arena arena;
  const Outcome outcome = RunThere(c, device, MakeTensors(c, &arena, kSeed), shift);
  std::string bits;
  for (size_t t = 0; t < outcome.values.size(); ++t) {
    if (c.tensors[t].role == TensorRole::kInput) continue;
    bits.append(reinterpret_cast<const char*>(outcome.values[t].data()),
                4 * outcome.values[t].size());
  }
  return bits;
}

CaseResult RunOnDevice(const KernelCase& c, const std::shared_ptr<gpu::Device>& device) {
  CaseResult result;
  const auto wrong = [&result](const auto&... words) {
    result.ok = false;
    if (result.text.empty()) result.text = absl::StrCat(words...);
  };
  Arena arena;
  const std::vector<Tensor> start = MakeTensors(c, &arena, kSeed);
  const std::vector<Tensor> want = MakeTensors(c, &arena, kSeed);
  const Outcome got = RunThere(c, device, start, 0);
  if (!got.status.ok()) wrong(got.status.ToString());
  if (got.wrote_ids) wrong("ids were written");
  c.run(MakeReferenceBackend(&arena).get(), want);
  for (size_t t = 0; t < want.size() && result.ok; ++t) {
    if (want[t].type() == DataType::kInt32) continue;
    if (c.tensors[t].role == TensorRole::kInput) {
      if (std::memcmp(got.values[t].data(), start[t].data(), start[t].bytes()) != 0) {
        wrong("input ", t, " was written");
      }
      continue;
    }
    const std::vector<double> bounds = ErrorBounds(c, want, t, kSeed);
    for (int64_t i = 0; i < want[t].size(); ++i) {
      const double a = got.values[t][i], b = want[t].f32()[i], error = std::abs(a - b);
      if (!(error <= bounds[i])) {
        wrong("tensor ", t, ", element ", i, ": ", a, " for ", b, ", allowed ", bounds[i]);
      }
      if (bounds[i] > 0) result.share = std::max(result.share, error / bounds[i]);
    }
  }
  return result;
}

}  // namespace pipelab
