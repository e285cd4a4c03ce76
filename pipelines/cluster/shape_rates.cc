#include "pipelines/cluster/shape_rates.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/graph/attention_workspace.h"
#include "pipelines/cluster/kernel_rates.h"
#include "tools/base/name_table.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<KernelPass, const char*>, 3> kPasses = {
    {{KernelPass::kForward, "forward"},
     {KernelPass::kInputGradient, "input_gradient"},
     {KernelPass::kWeightGradient, "weight_gradient"}}};
constexpr size_t kNeighbours = 4;
constexpr int64_t kMostSize = int64_t{1} << 40;
constexpr double kFlopsPerTflop = 1e12, kMostTflops = 1e6;

std::tuple<KernelPass, bool, int64_t, int64_t, int64_t, int64_t> OrderOf(const ShapeRate& s) {
  return {s.pass, s.groups > 1, s.m, s.n, s.k, s.groups};
}

std::array<double, 4> SizesOf(const ShapeRate& s) {
  return {static_cast<double>(s.m), static_cast<double>(s.n), static_cast<double>(s.k),
          static_cast<double>(s.groups)};
}

KernelPass PassOf(const Operation& o) {
  if (o.sums_rows) return KernelPass::kWeightGradient;
  return o.backward ? KernelPass::kInputGradient : KernelPass::kForward;
}

// Pairs are counted in whole blocks of query rows (attention_workspace.h), which a causal sample's
// queries read half of beside half of the tokens.
double CausalTokens(const Operation& o) {
  const double keys = KeysRead(o);
  return std::max(keys, 2 * keys - static_cast<double>(kAttentionQueryRows));
}

// The forward product's sizes, or the causal sample's.
std::array<double, 4> SizesOf(OperationKind kind, const Operation& o) {
  const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n);
  const auto k = static_cast<double>(o.k);
  if (kind == OperationKind::kAttention) {
    const double tokens = CausalTokens(o);
    return {tokens, std::max(1.0, n * m / tokens), k, 1};
  }
  const auto groups = static_cast<double>(o.groups);
  if (o.sums_rows) return {k, n, m, groups};
  if (o.backward) return {m, k, n, groups};
  return {m, n, k, groups};
}

absl::Status CheckShape(OperationKind kind, size_t i, const ShapeRate& s) {
  const auto error = [i](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", i, ": ", what));
  };
  for (const int64_t size : {s.m, s.n, s.k, s.groups}) {
    if (size < 1 || size > kMostSize) {
      return error(absl::StrCat("sizes must be from 1 to ", kMostSize, ", not ", size));
    }
  }
  if (!(s.tflops > 0 && s.tflops < kMostTflops)) {
    return error(
        absl::StrCat("Tflop/s must be above 0 and below ", kMostTflops, ", not ", s.tflops));
  }
  if (kind != OperationKind::kAttention) return absl::OkStatus();
  if (s.pass == KernelPass::kWeightGradient) return error("attention has no weight");
  return s.groups == 1 ? absl::OkStatus() : error("attention has no groups");
}

}  // namespace

const char* KernelPassName(KernelPass pass) { return NameInTable(kPasses, pass); }

absl::StatusOr<KernelPass> FindKernelPass(absl::string_view name) {
  return FindInTable(kPasses, name);
}

absl::StatusOr<ShapeRates> ShapeRates::Make(OperationKind kind, std::vector<ShapeRate> shapes) {
  if (shapes.empty() || shapes.size() > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("must have 1 to ", kMost, " shapes, not ", shapes.size()));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const absl::Status valid = CheckShape(kind, i, shapes[i]);
    if (!valid.ok()) return valid;
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const ShapeRate& a, const ShapeRate& b) { return OrderOf(a) < OrderOf(b); });
  ShapeRates made;
  made.kind_ = kind;
  for (size_t i = 0; i < shapes.size();) {
    double logs = 0, count = 0;
    size_t end = i;
    for (; end < shapes.size() && OrderOf(shapes[end]) == OrderOf(shapes[i]); ++end, ++count) {
      logs += std::log(shapes[end].tflops);
    }
    Pass& pass = made.passes_[KeyOf(shapes[i].pass, SizesOf(shapes[i])[3])];
    const Sizes sizes = SizesOf(shapes[i]);
    for (size_t a = 0; a < sizes.size(); ++a) {
      pass.least[a] = pass.shapes.empty() ? sizes[a] : std::min(pass.least[a], sizes[a]);
    }
    pass.shapes.push_back(made.shapes_.size());
    if (count > 1) shapes[i].tflops = std::exp(logs / count);
    made.shapes_.push_back(shapes[i]);
    i = end;
  }
  return made;
}

const ShapeRate* ShapeRates::Find(KernelPass pass, const Sizes& sizes) const {
  ShapeRate wanted;
  wanted.pass = pass;
  wanted.m = std::llround(sizes[0]);
  wanted.n = std::llround(sizes[1]);
  wanted.k = std::llround(sizes[2]);
  wanted.groups = std::llround(sizes[3]);
  const auto at = std::lower_bound(
      shapes_.begin(), shapes_.end(), wanted,
      [](const ShapeRate& a, const ShapeRate& b) { return OrderOf(a) < OrderOf(b); });
  return at != shapes_.end() && OrderOf(*at) == OrderOf(wanted) ? &*at : nullptr;
}

bool ShapeRates::Has(const Operation& operation) const {
  return Find(PassOf(operation), SizesOf(kind_, operation)) != nullptr;
}

double ShapeRates::Nearest(const Pass& pass, const Sizes& sizes, const ShapeRate* without) const {
  std::vector<std::pair<double, double>> neighbours;  // distance, logarithm of Tflop/s
  for (const size_t place : pass.shapes) {
    const ShapeRate& s = shapes_[place];
    if (&s == without) continue;
    const Sizes of = SizesOf(s);
    double square = 0;
    for (size_t a = 0; a < of.size(); ++a) square += std::pow(std::log(sizes[a] / of[a]), 2);
    neighbours.emplace_back(std::sqrt(square), std::log(s.tflops));
  }
  const size_t count = std::min(kNeighbours, neighbours.size());
  std::partial_sort(neighbours.begin(), neighbours.begin() + static_cast<std::ptrdiff_t>(count),
                    neighbours.end());
  constexpr double kLeast = 1e-9;  // of a distance
  double sum = 0, weights = 0;
  for (size_t i = 0; i < count; ++i) {
    const double weight = 1 / std::max(kLeast, neighbours[i].first);
    sum += weight * neighbours[i].second;
    weights += weight;
  }
  return std::exp(sum / weights);
}

absl::optional<double> ShapeRates::RateOf(const Operation& operation) const {
  const KernelPass kernel = PassOf(operation);
  Sizes sizes = SizesOf(kind_, operation);
  const auto found = passes_.find(KeyOf(kernel, sizes[3]));
  if (found == passes_.end()) return absl::nullopt;
  // Measured flops of attention are those of its tokens.
  const bool attention = kind_ == OperationKind::kAttention;
  double share = attention ? 2 * KeysRead(operation) / sizes[0] : 1;
  if (const ShapeRate* exact = Find(kernel, sizes); exact != nullptr)
    return share * kFlopsPerTflop * exact->tflops;
  for (size_t a = 0; a < 3; ++a) {
    const double least = found->second.least[a];
    if (sizes[a] >= least) continue;
    const double tile = attention ? least : std::min(kProductTile, least);
    share *= std::min(1.0, sizes[a] / tile);
    sizes[a] = least;
  }
  return share * kFlopsPerTflop * Nearest(found->second, sizes, nullptr);
}

double ShapeRates::LeftOutError() const {
  std::vector<double> errors;
  for (const auto& [key, pass] : passes_) {
    if (pass.shapes.size() < 2) continue;
    for (const size_t place : pass.shapes) {
      const ShapeRate& s = shapes_[place];
      errors.push_back(std::abs(Nearest(pass, SizesOf(s), &s) / s.tflops - 1));
    }
  }
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

}  // namespace pipelab
