#include "pipelines/cluster/device.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/cluster/kernel_rates.h"
#include "tools/base/name_table.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr std::array<std::pair<NumberType, const char*>, 5> kNumberTypes = {
    {{NumberType::kFp32, "fp32"},
     {NumberType::kTf32, "tf32"},
     {NumberType::kBf16, "bf16"},
     {NumberType::kFp16, "fp16"},
     {NumberType::kFp8, "fp8"}}};
constexpr double kMostSeconds = 1e6;

// In logarithms. Time goes with size^(1 - slope).
double Slope(const EfficiencyCurve::Point& from, const EfficiencyCurve::Point& to) {
  return std::log(to.share / from.share) / std::log(to.size / from.size);
}

double RoundedUp(int64_t size, int64_t tile) {
  const int64_t whole = (size + tile - 1) / tile * tile;
  return static_cast<double>(whole) / static_cast<double>(size);
}

// The type in which products of numbers of this type are computed: layers alone multiply 1-byte
// numbers.
NumberType ProductType(NumberType type, const Operation& operation) {
  const bool half = operation.kind != OperationKind::kMatmul || operation.half;
  return type == NumberType::kFp8 && half ? NumberType::kBf16 : type;
}

// Curves are those of 2 bytes, by work: as much of it in the time that the peak would take.
double ArithmeticTime(const DeviceSpec& device, double work, FlopsPerSecond peak, NumberType type,
                      const EfficiencyCurve& curve) {
  const auto half = device.peaks.find(NumberType::kBf16);
  const bool faster = type == NumberType::kFp8 && half != device.peaks.end();
  const double as_half = faster ? half->second.value.value() / peak.value() : 1;
  return work / (peak.value() * curve.At(work * as_half));
}

// In seconds; 0 for no work.
double RooflineTime(double work, double peak, const EfficiencyCurve& curve) {
  return work > 0 ? work / (peak * curve.At(work)) : 0;
}

}  // namespace

const char* NumberTypeName(NumberType type) { return NameInTable(kNumberTypes, type); }

absl::StatusOr<NumberType> FindNumberType(absl::string_view name) {
  return FindInTable(kNumberTypes, name);
}

int64_t BytesOf(NumberType type) {
  return type == NumberType::kFp32 || type == NumberType::kTf32 ? 4 : 2;
}

double EfficiencyCurve::At(double size) const {
  const Point& first = points.front();
  if (size <= first.size) return first.share * size / first.size;
  const auto next = std::lower_bound(points.begin(), points.end(), size,
                                     [](const Point& p, double s) { return p.size < s; });
  if (next == points.end()) return points.back().share;
  const Point& before = *(next - 1);
  return before.share * std::pow(size / before.size, Slope(before, *next));
}

absl::Status CheckCurve(const EfficiencyCurve& curve) {
  if (curve.points.empty()) return absl::InvalidArgumentError("must have a point");
  for (size_t i = 0; i < curve.points.size(); ++i) {
    const EfficiencyCurve::Point& p = curve.points[i];
    if (!(p.size > 0 && std::isfinite(p.size))) {
      return absl::InvalidArgumentError(
          absl::StrCat("point ", i, ": the size must be above 0, not ", p.size));
    }
    if (!(p.share > 0 && p.share <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("point ", i, ": the share must be above 0 and at most 1, not ", p.share));
    }
    if (i == 0) continue;
    const EfficiencyCurve::Point& before = curve.points[i - 1];
    if (before.size >= p.size) {
      return absl::InvalidArgumentError(absl::StrCat("point ", i, ": sizes must ascend"));
    }
    if (Slope(before, p) > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "point ", i, ": the share rises so fast that a larger operation would take less time"));
    }
  }
  return absl::OkStatus();
}

Nanoseconds LaunchGap(const DeviceSpec& device) {
  const auto& gap = device.launch_gap.has_value() ? device.launch_gap : device.host_launch;
  return gap.has_value() ? gap->value : Nanoseconds(0);
}

Flops FlopsSpent(const DeviceSpec& device, const Operation& operation) {
  if (!device.product_tile.has_value()) return operation.flops;
  const ProductTile& tile = device.product_tile->value;
  const bool product = operation.kind != OperationKind::kAttention;
  double more = 1;
  if (product && operation.m > 0) more *= RoundedUp(operation.m, tile.m);
  if (product && operation.n > 0) more *= RoundedUp(operation.n, tile.n);
  if (operation.k > 0) more *= RoundedUp(operation.k, tile.k);
  return more * operation.flops;
}

double ProductAlignment::At(const Operation& operation) const {
  const int64_t inner = operation.sums_rows ? operation.m : operation.k;
  const int64_t n = operation.kind == OperationKind::kAttention ? 0 : operation.n;
  double share = points.front().share;
  for (const Point& p : points) {
    if (n % p.numbers + inner % p.numbers > 0) break;
    share = p.share;
  }
  return share;
}

absl::Status CheckAlignment(const ProductAlignment& alignment) {
  const std::vector<ProductAlignment::Point>& points = alignment.points;
  if (points.empty()) return absl::InvalidArgumentError("must have a point");
  for (size_t i = 0; i < points.size(); ++i) {
    const auto error = [i](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("point ", i, ": ", what));
    };
    const int64_t before = i == 0 ? 1 : points[i - 1].numbers;
    if (points[i].numbers < 1 || points[i].numbers % before != 0 ||
        (points[i].numbers == before) != (i == 0)) {
      return error("numbers must begin at 1, each a multiple of the one before and above it");
    }
    if (!(points[i].share > 0 && points[i].share <= 1)) {
      return error(absl::StrCat("the share must be above 0 and at most 1, not ", points[i].share));
    }
    if (i > 0 && points[i].share < points[i - 1].share) {
      return error("the share must not be less than the one before");
    }
  }
  if (points.back().share < 1) return absl::InvalidArgumentError("the last share must be 1");
  return absl::OkStatus();
}

namespace {

// In seconds; of an operation with products.
absl::StatusOr<double> ArithmeticTimeOf(const DeviceSpec& device, NumberType type,
                                        const Operation& operation) {
  const NumberType of_products = ProductType(type, operation);
  const auto peak = device.peaks.find(of_products);
  if (peak == device.peaks.end()) {
    return absl::NotFoundError(
        absl::StrCat("device ", device.name, " has no peak for ", NumberTypeName(of_products)));
  }
  if (device.rates != nullptr) {
    const absl::optional<double> rate = device.rates->RateOf(operation, of_products);
    if (rate.has_value()) return operation.flops.value() / *rate;
  }
  const auto curve = device.arithmetic.find(operation.kind);
  if (curve == device.arithmetic.end()) {
    return absl::NotFoundError(absl::StrCat("device ", device.name, " has no efficiency for ",
                                            OperationKindName(operation.kind)));
  }
  const auto groups = static_cast<double>(operation.groups);
  return groups * ArithmeticTime(device, FlopsSpent(device, operation).value() / groups,
                                 peak->second.value, of_products, curve->second.value);
}

// Rates of weights' gradients have in them what adds these to sums.
bool HasSums(const DeviceSpec& device, NumberType type) {
  return device.rates != nullptr && device.rates->HasSums(type);
}

// In seconds: what a weight's gradient is added to, read and written beside the product.
double SumsTime(const DeviceSpec& device, NumberType type, const Operation& operation) {
  if (!operation.sums_rows || operation.sums == GradientSums::kApart) return 0;
  if (device.rates == nullptr && operation.sums == GradientSums::kMachine) return 0;
  if (HasSums(device, ProductType(type, operation))) return 0;
  constexpr double kBytes = 8;  // 4 bytes read, 4 written
  return RooflineTime(kBytes * static_cast<double>(operation.m * operation.n * operation.groups),
                      device.memory_bandwidth.value.value(), device.memory_efficiency.value);
}

// Whether another operation does its work here.
bool IsPartOfAnother(const DeviceSpec& device, NumberType type, const Operation& operation) {
  if (operation.own) return !device.own_kernels;
  return operation.adds_gradient && operation.of_product && HasSums(device, type);
}

}  // namespace

absl::StatusOr<Nanoseconds> OperationTime(const DeviceSpec& device, NumberType type,
                                          const Operation& operation) {
  if (operation.kind == OperationKind::kMeasured) return operation.time;
  if (IsPartOfAnother(device, type, operation)) return Nanoseconds(0);
  double arithmetic = 0;
  if (operation.flops > Flops(0) && HasProducts(operation.kind)) {
    PIPELAB_ASSIGN_OR_RETURN(arithmetic, ArithmeticTimeOf(device, type, operation));
    if (device.product_alignment.has_value()) {
      arithmetic /= device.product_alignment->value.At(operation);
    }
    arithmetic += SumsTime(device, type, operation);
  }
  const auto own = device.memory_efficiency_of.find(operation.kind);
  const double memory = RooflineTime(
      static_cast<double>(operation.numbers * BytesOf(type) + operation.packed.value()),
      device.memory_bandwidth.value.value(),
      own == device.memory_efficiency_of.end() ? device.memory_efficiency.value
                                               : own->second.value);
  return device.launch_overhead.value +
         Nanoseconds(std::llround(std::min(std::max(arithmetic, memory), kMostSeconds) * 1e9));
}

absl::StatusOr<Nanoseconds> RunTime(const DeviceSpec& device, NumberType type,
                                    absl::Span<const Operation> operations, int64_t collectives,
                                    Nanoseconds collectives_time) {
  Nanoseconds work = collectives_time, measured;
  int64_t launches = 0;
  for (const Operation& o : operations) {
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds time, OperationTime(device, type, o));
    if (o.kind == OperationKind::kMeasured) {
      measured += time;
      continue;
    }
    work += time;
    if (!IsPartOfAnother(device, type, o)) launches += o.calls;
  }
  // A graph of whole layers launches their collectives too.
  const bool graphed = launches == 0 && !operations.empty();
  if (graphed || !device.host_launch.has_value()) return measured + work;
  const auto& call =
      device.collective_launch.has_value() ? device.collective_launch : device.host_launch;
  const Nanoseconds host = device.host_launch->value * launches + call->value * collectives;
  return measured + std::max(work, host);
}

}  // namespace pipelab
