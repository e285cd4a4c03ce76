#include "pipelines/cluster/machine_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/cluster/shape_rates.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr const char* kOrigins[] = {"measured", "published", "calibrated",
                                    "recalled", "assumed",   "computed"};

std::string Prefixed(double value, const char* unit) {
  const char* const prefixes[] = {"", "k", "M", "G", "T"};
  size_t i = 0;
  for (; value >= 1000 && i + 1 < std::size(prefixes); ++i) value /= 1000;
  return absl::StrFormat("%.6g %s%s", value, prefixes[i], unit);
}

// "0.698, half at 9.89 Gflop": the largest share, and the size of half of it.
template <typename Q>
std::string CurveText(const EfficiencyCurve& curve) {
  const double most = curve.points.back().share;
  double low = 0, high = curve.points.back().size;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (curve.At(middle) < most / 2 ? low : high) = middle;
  }
  return absl::StrFormat("%.3g, half at %s", most, ToString(Q(std::llround(high))));
}

std::string TextOfRates(const RateGrid& table) {
  const auto [least, most] = std::minmax_element(table.rates().begin(), table.rates().end());
  return absl::StrFormat("%s at most, %d sizes", ExactText(FlopsPerSecond(*most)),
                         table.rates().size());
}

std::string TextOfShapes(const std::vector<ShapeRate>& shapes) {
  const auto most =
      std::max_element(shapes.begin(), shapes.end(),
                       [](const ShapeRate& a, const ShapeRate& b) { return a.tflops < b.tflops; });
  return absl::StrFormat("%s at most, %d shapes", ExactText(FlopsPerSecond(1e12 * most->tflops)),
                         shapes.size());
}

std::string AlignmentText(const ProductAlignment& alignment) {
  std::string text;
  for (const ProductAlignment::Point& p : alignment.points) {
    absl::StrAppendFormat(&text, "%s%d: %g", text.empty() ? "" : ", ", p.numbers, p.share);
  }
  return text;
}

constexpr char kOtherShapes[] =
    "computed: a shape that was not measured has the rate of the four nearest of its pass; the "
    "error is that of each measured one from the others";

class Values {
 public:
  void Add(std::string place, std::string text, std::string source) {
    values_.push_back({std::move(place), std::move(text), std::move(source)});
  }
  template <typename Q>
  void Add(const std::string& place, const Sourced<Q>& value) {
    Add(place, ExactText(value.value), value.source);
  }
  template <typename Q>
  void AddIfThere(const std::string& place, const absl::optional<Sourced<Q>>& value) {
    if (value.has_value()) Add(place, *value);
  }
  template <typename Q>
  void AddCurve(const std::string& place, const Sourced<EfficiencyCurve>& curve) {
    Add(place, CurveText<Q>(curve.value), curve.source);
  }
  void AddShare(const std::string& place, const absl::optional<Sourced<double>>& share) {
    if (share.has_value()) Add(place, absl::StrCat(share->value), share->source);
  }
  void AddConnection(const std::string& place, const Connection& connection) {
    Add(place + ".latency", connection.latency);
    Add(place + ".bandwidth", connection.bandwidth);
  }

  std::vector<MachineValue> Take() { return std::move(values_); }

 private:
  std::vector<MachineValue> values_;
};

// Tables, and by which rule the types have rates that they lack.
void AddRates(const DeviceSpec& device, Values* values) {
  const KernelRates& rates = *device.rates;
  for (const OperationKind kind : {OperationKind::kMatmul, OperationKind::kAttention}) {
    const std::string kind_name = OperationKindName(kind);
    for (const auto& [type, peak] : device.peaks) {
      // Attention has 2 bytes under fp8.
      if (kind == OperationKind::kAttention && type == NumberType::kFp8) continue;
      const std::string place = absl::StrCat("device.rates.", kind_name, ".", NumberTypeName(type));
      const auto table = rates.tables.find({kind, type});
      const auto list = rates.shapes.find({kind, type});
      if (list != rates.shapes.end()) {
        values->Add(place, TextOfShapes(list->second.value.shapes()), list->second.source);
        values->Add(
            place + ".others",
            absl::StrFormat("%.1f %% off in the median", 100 * list->second.value.LeftOutError()),
            kOtherShapes);
      } else if (table != rates.tables.end()) {
        values->Add(place, TextOfRates(table->second.value), table->second.source);
      } else if (const RateGrid* other = rates.Find(kind, type); other != nullptr) {
        values->Add(place, TextOfRates(*other), "assumed: the rates of bf16, whose units it has");
      } else {
        values->Add(place, "no table",
                    absl::StrCat("assumed: flops / (peaks.", NumberTypeName(type),
                                 " x the share of arithmetic.", kind_name, " at these flops)"));
      }
    }
  }
  values->AddShare("device.rates.attention_backward", rates.attention_backward);
  values->AddShare("device.rates.sustained", rates.sustained);
}

void AddHost(const DeviceSpec& device, Values* values) {
  const auto launch_or = [&](const char* key, const absl::optional<Sourced<Nanoseconds>>& own) {
    if (own.has_value()) return values->Add(absl::StrCat("device.", key), *own);
    if (!device.host_launch.has_value()) return;
    values->Add(absl::StrCat("device.", key), ExactText(device.host_launch->value),
                "computed: one host_launch");
  };
  values->AddIfThere("device.host_launch", device.host_launch);
  launch_or("collective_launch", device.collective_launch);
  values->AddIfThere("device.collective_overhead", device.collective_overhead);
  launch_or("launch_gap", device.launch_gap);
  values->AddIfThere("device.step_set_up", device.step_set_up);
}

void AddDevice(const DeviceSpec& device, Values* values) {
  for (const auto& [type, peak] : device.peaks) {
    values->Add(absl::StrCat("device.peaks.", NumberTypeName(type)), peak);
  }
  values->Add("device.memory", device.memory);
  values->Add("device.memory_bandwidth", device.memory_bandwidth);
  values->Add("device.launch_overhead", device.launch_overhead);
  for (const auto& [kind, curve] : device.arithmetic) {
    values->AddCurve<Flops>(absl::StrCat("device.arithmetic.", OperationKindName(kind)), curve);
  }
  values->AddCurve<Bytes>("device.memory_efficiency", device.memory_efficiency);
  for (const auto& [kind, curve] : device.memory_efficiency_of) {
    values->AddCurve<Bytes>(absl::StrCat("device.memory_efficiency_of.", OperationKindName(kind)),
                            curve);
  }
  if (device.product_tile.has_value()) {
    const ProductTile& tile = device.product_tile->value;
    values->Add("device.product_tile", absl::StrFormat("%d x %d x %d", tile.m, tile.n, tile.k),
                device.product_tile->source);
  }
  if (device.product_alignment.has_value()) {
    values->Add("device.product_alignment", AlignmentText(device.product_alignment->value),
                device.product_alignment->source);
  }
  if (device.rates != nullptr) AddRates(device, values);
  AddHost(device, values);
}

void AddRing(const std::string& place, const RingConnection& ring, Values* values) {
  values->AddConnection(place, ring.connection);
  if (ring.all_to_all.has_value()) values->Add(place + ".all_to_all", *ring.all_to_all);
  if (ring.all_reduce.has_value()) return values->Add(place + ".all_reduce", *ring.all_reduce);
  values->Add(place + ".all_reduce", ExactText(ring.connection.bandwidth.value),
              "computed: the ring's bandwidth");
}

void AddLevel(const std::string& place, const ClusterLevel& level, Values* values) {
  values->AddConnection(place, level.connection);
  for (size_t i = 0; i < level.rings.size(); ++i) {
    const bool alone = level.rings[i].ranks == 0;
    AddRing(alone ? place + ".ring" : absl::StrCat(place, ".ring[", i, "]"), level.rings[i],
            values);
  }
  if (level.through.has_value()) {
    values->AddConnection(place + ".through", level.through->connection);
  }
}

}  // namespace

std::string ExactText(Bytes b) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  if (b.value() % kGiB == 0) return absl::StrCat(b.value() / kGiB, " GiB");
  return Prefixed(static_cast<double>(b.value()), "B");
}
std::string ExactText(Nanoseconds t) {
  const auto ns = static_cast<double>(t.value());
  return ns < 1e6 ? absl::StrFormat("%.6g us", ns / 1e3) : absl::StrFormat("%.6g ms", ns / 1e6);
}
std::string ExactText(BytesPerSecond r) { return Prefixed(r.value(), "B/s"); }
std::string ExactText(FlopsPerSecond r) { return Prefixed(r.value(), "flop/s"); }

ValueOrigin OriginOf(absl::string_view source) {
  for (const absl::string_view name : kOrigins) {
    if (!absl::StartsWith(source, name)) continue;
    const absl::string_view rest = source.substr(name.size());
    if (rest.size() > 2 && absl::StartsWith(rest, ": ")) return {name, rest.substr(2)};
  }
  return {"not given", source};
}

std::vector<MachineValue> ValuesOf(const ClusterSpec& cluster) {
  Values values;
  AddDevice(cluster.device, &values);
  const absl::optional<Sourced<EfficiencyRange>>& own = cluster.device.efficiency_range;
  const EfficiencyRange range = EfficiencyRangeOf(cluster);
  if (own.has_value() || cluster.device.calibrated.empty()) {
    values.Add("device.efficiency_range", absl::StrFormat("%g to %g", range.worst, range.best),
               own.has_value()
                   ? own->source
                   : "assumed: of machines that were not calibrated; calibrating dgx-a100 "
                     "changed its assumed shares by 0.77 and 0.93");
  }
  if (cluster.host_link.has_value()) {
    values.Add("host_link.bandwidth", cluster.host_link->bandwidth);
  }
  for (size_t i = 0; i < cluster.levels.size(); ++i) {
    AddLevel(absl::StrCat("levels[", i, "]"), cluster.levels[i], &values);
  }
  return values.Take();
}

}  // namespace pipelab
