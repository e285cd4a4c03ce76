#include "models/layers/initialize.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"

namespace pipelab {

void InitializeParameter(const ParameterSpec& spec, uint64_t seed, absl::Span<float> value) {
  CHECK_EQ(static_cast<int64_t>(value.size()), spec.size()) << spec.name;
  if (spec.init != InitKind::kNormal) {
    std::fill(value.begin(), value.end(), spec.init == InitKind::kOnes ? 1.0f : 0.0f);
    return;
  }
  const CounterRng rng(seed, absl::StrCat("init/", ValueName(spec)));
  const float stddev = static_cast<float>(spec.stddev);
  for (size_t i = 0; i < value.size(); ++i)
    value[i] = stddev * rng.Normal(spec.cut.WholeIndex(static_cast<int64_t>(i)));
}

void InitializeTensor(const ParameterSpec& spec, uint64_t seed, const Tensor& value) {
  FillOnHost<float>(value, [&](absl::Span<float> all) { InitializeParameter(spec, seed, all); });
}

}  // namespace pipelab
