#include "kernels/cases/kernel_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/tensor/bfloat16.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

Tensor Shifted(Arena* arena, DataType type, const Shape& shape, int64_t shift) {
  const int64_t size = NumElements(shape);
  return arena->Allocate(type, {size + shift}, MemoryKind::kActivation)
      .Rows(shift, shift + size)
      .Reshape(shape);
}

void FillTensor(const CaseTensor& spec, const CounterRng& rng, const Tensor& tensor) {
  if (spec.index_bound > 0) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      tensor.i32()[i] = static_cast<int32_t>(rng.Below(i, spec.index_bound));
    }
    return;
  }
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const float value = static_cast<float>(spec.spread) * rng.Normal(i);
    tensor.f32()[i] = spec.role == TensorRole::kOutput ? std::numeric_limits<float>::quiet_NaN()
                      : spec.positive                  ? std::abs(value)
                                                       : value;
  }
}

constexpr double kHalfUnit = 0x1.0p-8;  // of bfloat16, of a number's size

bool Contains(const std::vector<size_t>& tensors, size_t t) {
  return std::find(tensors.begin(), tensors.end(), t) != tensors.end();
}

}  // namespace

bool KernelCase::IsBFloat16(size_t tensor) const {
  if (activations != DataType::kBFloat16 || tensors[tensor].index_bound > 0) return false;
  return !Contains(in_bfloat16->floats, tensor);
}

std::vector<Tensor> MakeTensors(const KernelCase& c, Arena* arena, uint64_t seed, int64_t shift) {
  std::vector<Tensor> tensors;
  for (size_t t = 0; t < c.tensors.size(); ++t) {
    const CaseTensor& spec = c.tensors[t];
    const DataType type = spec.index_bound > 0 ? DataType::kInt32 : DataType::kFloat32;
    tensors.push_back(Shifted(arena, type, spec.shape, shift));
    FillTensor(spec, CounterRng(seed, absl::StrCat(c.name, "/", t)), tensors.back());
  }
  const auto round = [&] {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (!c.IsBFloat16(t)) continue;
      for (float& v : tensors[t].f32()) v = BFloat16(v);
    }
  };
  round();
  if (c.prepare) c.prepare(MakeReferenceBackend(arena).get(), tensors);
  round();
  return tensors;
}

double ErrorFactor(int64_t terms) {
  return 4 * (std::sqrt(static_cast<double>(terms)) + 2) * 0x1.0p-24;
}

namespace {

std::vector<double> FloatBounds(const KernelCase& c, const std::vector<Tensor>& results, size_t t,
                                uint64_t seed) {
  const double factor = ErrorFactor(c.error_terms) * c.error_scale;
  if (c.error_model == ErrorModel::kSmooth) {
    double most = std::numeric_limits<float>::min();  // below it float loses digits
    if (c.magnitude) {
      most = c.magnitude(results);
    } else {
      for (float v : results[t].f32()) most = std::max(most, std::abs(double{v}));
    }
    return std::vector<double>(results[t].size(), factor * most);
  }
  Arena arena;
  const std::vector<Tensor> absolute = MakeTensors(c, &arena, seed);
  for (const Tensor& x : absolute) {
    if (x.type() != DataType::kFloat32) continue;
    for (float& v : x.f32()) v = std::abs(v);
  }
  c.run(MakeReferenceBackend(&arena).get(), absolute);
  std::vector<double> bounds;
  for (float v : absolute[t].f32()) bounds.push_back(factor * double{v});
  return bounds;
}

}  // namespace

std::vector<double> ErrorBounds(const KernelCase& c, const std::vector<Tensor>& results, size_t t,
                                uint64_t seed) {
  std::vector<double> bounds = FloatBounds(c, results, t, seed);
  if (c.activations != DataType::kBFloat16) return bounds;
  const CaseInBFloat16& half = *c.in_bfloat16;
  if (Contains(half.rounded_sums, t)) {
    Arena arena;
    const Tensor start = MakeTensors(c, &arena, seed)[t];
    for (size_t i = 0; i < bounds.size(); ++i) {
      const double sum = double{results[t].f32()[i]} - start.f32()[i];
      bounds[i] += kHalfUnit * (std::abs(sum) + bounds[i]);
    }
  }
  if (!c.IsBFloat16(t)) return bounds;
  const double of_all = half.size ? half.size(results) : 0;
  const std::vector<double> on_the_way =
      half.on_the_way ? half.on_the_way(results, t) : std::vector<double>(bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    bounds[i] += on_the_way[i];
    const double size = half.size ? of_all : std::abs(double{results[t].f32()[i]});
    bounds[i] += half.roundings * kHalfUnit * (size + bounds[i]);
  }
  return bounds;
}

}  // namespace pipelab
