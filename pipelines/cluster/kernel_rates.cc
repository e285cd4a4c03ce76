#include "pipelines/cluster/kernel_rates.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

// Numbers printed with four digits may be off by so much.
constexpr double kRounding = 1.001;

absl::Status CheckAxis(int axis, const std::vector<double>& sizes) {
  if (sizes.empty()) return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is empty"));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > (i == 0 ? 0 : sizes[i - 1]) && sizes[i] < 1e12) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, ": sizes must be above 0 and ascend, unlike ", sizes[i]));
  }
  return absl::OkStatus();
}

std::vector<double> LogsOf(const std::vector<double>& values) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double v : values) logs.push_back(std::log(v));
  return logs;
}

template <typename T>
const T* FindIn(const std::map<std::pair<OperationKind, NumberType>, Sourced<T>>& all,
                OperationKind kind, NumberType type) {
  auto found = all.find({kind, type});
  if (found == all.end() && type == NumberType::kFp16) found = all.find({kind, NumberType::kBf16});
  return found == all.end() ? nullptr : &found->second.value;
}

}  // namespace

absl::StatusOr<RateGrid> RateGrid::Make(std::array<std::vector<double>, 3> axes,
                                        std::vector<double> rates) {
  size_t count = 1;
  for (int a = 0; a < 3; ++a) {
    const absl::Status status = CheckAxis(a, axes[a]);
    if (!status.ok()) return status;
    count *= axes[a].size();
  }
  if (rates.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("must have ", count, " rates, one for each place, not ", rates.size()));
  }
  const size_t strides[3] = {axes[1].size() * axes[2].size(), axes[2].size(), 1};
  for (size_t i = 0; i < count; ++i) {
    if (!(rates[i] > 0 && rates[i] < 1e18)) {
      return absl::InvalidArgumentError(absl::StrCat("rate ", i, " must be above 0"));
    }
    for (int a = 0; a < 3; ++a) {
      const size_t place = i / strides[a] % axes[a].size();
      if (place == 0) continue;
      const double faster = rates[i] / rates[i - strides[a]];
      const double larger = axes[a][place] / axes[a][place - 1];
      if (faster * kRounding < 1 || faster > larger * kRounding) {
        return absl::InvalidArgumentError(absl::StrCat("rate ", i, ": a larger operation would ",
                                                       faster < 1 ? "be slower" : "take less time",
                                                       " than a smaller one"));
      }
    }
  }
  RateGrid table;
  for (int a = 0; a < 3; ++a) table.log_axes_[a] = LogsOf(axes[a]);
  table.log_rates_ = LogsOf(rates);
  table.axes_ = std::move(axes);
  table.rates_ = std::move(rates);
  return table;
}

double RateGrid::At(const Sizes& sizes) const {
  size_t below[3], above[3];
  double share[3];  // of the way from the one to the other
  double log_rate = 0;
  for (int a = 0; a < 3; ++a) {
    const std::vector<double>& axis = log_axes_[a];
    const double at = std::log(sizes[a]);
    const size_t next = std::lower_bound(axis.begin(), axis.end(), at) - axis.begin();
    above[a] = std::min(next, axis.size() - 1);
    below[a] = next == 0 || next == axis.size() ? above[a] : next - 1;
    share[a] = above[a] == below[a] ? 0 : (at - axis[below[a]]) / (axis[above[a]] - axis[below[a]]);
    if (next == 0) log_rate += at - axis[0];  // as long as the smallest
  }
  for (int corner = 0; corner < 8; ++corner) {
    double weight = 1;
    size_t place = 0;
    for (int a = 0; a < 3; ++a) {
      const bool upper = (corner >> a & 1) != 0;
      weight *= upper ? share[a] : 1 - share[a];
      place = place * axes_[a].size() + (upper ? above[a] : below[a]);
    }
    if (weight > 0) log_rate += weight * log_rates_[place];
  }
  return std::exp(log_rate);
}

// Two products forward, five backward, each of 2 flops for a query, a key and a number of a head.
double KeysRead(const Operation& o) {
  return o.flops.value() / ((o.backward ? 10 : 4) * static_cast<double>(o.m) *
                            static_cast<double>(o.n) * static_cast<double>(o.k));
}

const RateGrid* KernelRates::Find(OperationKind kind, NumberType type) const {
  return FindIn(tables, kind, type);
}

const ShapeRates* KernelRates::FindShapes(OperationKind kind, NumberType type) const {
  return FindIn(shapes, kind, type);
}

bool KernelRates::HasSums(NumberType type) const {
  const ShapeRates* list = FindShapes(OperationKind::kMatmul, type);
  return list != nullptr && list->shapes().back().pass == KernelPass::kWeightGradient;
}

absl::optional<double> KernelRates::RateOf(const Operation& o, NumberType type) const {
  if (o.m <= 0 || o.n <= 0 || o.k <= 0) return absl::nullopt;
  double rate = sustained.has_value() ? sustained->value : 1;
  if (const ShapeRates* list = FindShapes(o.kind, type); list != nullptr) {
    const absl::optional<double> of_shape = list->RateOf(o);
    if (of_shape.has_value()) return rate * *of_shape;
  }
  const RateGrid* table = Find(o.kind, type);
  if (table == nullptr) return absl::nullopt;
  const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n);
  const auto k = static_cast<double>(o.k);
  if (o.kind != OperationKind::kAttention) {
    RateGrid::Sizes sizes = {m * static_cast<double>(o.groups), n, k};
    for (int a = 0; a < 3; ++a) {
      const double least = table->axes()[a].front(), tile = std::min(kProductTile, least);
      if (sizes[a] >= least) continue;
      rate *= std::min(1.0, sizes[a] / tile);
      sizes[a] = least;
    }
    return rate * table->At(sizes);
  }
  const double keys = KeysRead(o);
  if (o.backward && attention_backward.has_value()) rate *= attention_backward->value;
  return rate * table->At({std::max(1.0, 2 * keys), n, k});
}

void DropRates(OperationKind kind, NumberType type, DeviceSpec* device) {
  if (device->rates == nullptr) return;
  auto rates = std::make_shared<KernelRates>(*device->rates);
  rates->name.clear();
  rates->tables.erase({kind, type});
  rates->shapes.erase({kind, type});
  device->rates = std::move(rates);
}

}  // namespace pipelab
