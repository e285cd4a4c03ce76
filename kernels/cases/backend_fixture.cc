#include "kernels/cases/backend_fixture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "tools/base/rng.h"

namespace pipelab {

Tensor BackendTest::Random(Shape shape, absl::string_view name) {
  Tensor t = backend_->Allocate(std::move(shape));
  const CounterRng rng(9, name);
  for (int64_t i = 0; i < t.size(); ++i) t.f32()[i] = rng.Normal(i);
  return t;
}

Tensor BackendTest::Filled(Shape shape, float value) {
  Tensor t = backend_->Allocate(std::move(shape));
  backend_->Fill(t, value);
  return t;
}

Tensor BackendTest::Clone(const Tensor& x) {
  Tensor t = backend_->Allocate(x.shape());
  backend_->Copy(x, t);
  return t;
}

Tensor BackendTest::Int(std::vector<int32_t> values) {
  Tensor t = arena_.Allocate(DataType::kInt32, {static_cast<int64_t>(values.size())},
                             MemoryKind::kActivation);
  std::copy(values.begin(), values.end(), t.i32().begin());
  return t;
}

Tensor BackendTest::Float(Shape shape, std::vector<float> values) {
  Tensor t = backend_->Allocate(std::move(shape));
  std::copy(values.begin(), values.end(), t.f32().begin());
  return t;
}

bool BackendTest::SameBits(const Tensor& a, const Tensor& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

testing::internal::ParamGenerator<BackendFactory> AllBackends() {
  return testing::Values(&MakeReferenceBackend, &MakeCpuBackend);
}

std::string BackendName(const testing::TestParamInfo<BackendFactory>& info) {
  Arena arena;
  return std::string(info.param(&arena)->name());
}

}  // namespace pipelab
