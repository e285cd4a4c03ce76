#include "experiments/calibration/rate_table.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

constexpr double kGiga = 1e-9;

// Rates of products are in Gflop/s, others in GB/s.
void AddRow(const std::string& kind, bool products, const EfficiencyCurve& curve, double peak,
            Table* t) {
  const auto size = [products](const EfficiencyCurve::Point& p) {
    return products ? ToString(Flops(p.size)) : ToString(Bytes(static_cast<int64_t>(p.size)));
  };
  const EfficiencyCurve::Point &small = curve.points.front(), &large = curve.points.back();
  t->AddRow({Label(kind), Label(products ? "Gflop/s" : "GB/s"), Label(size(small)),
             Measured(small.share * peak * kGiga), Label(size(large)),
             Measured(large.share * peak * kGiga)});
}

}  // namespace

Table RateTable(const ClusterSpec& measured) {
  const DeviceSpec& device = measured.device;
  Table t("rates", absl::StrCat("Kernels on one thread: ", device.name));
  t.AddKey("kind");
  t.AddKey("unit");
  t.AddKey("small", "small size");
  t.AddColumn({"small_rate", "rate", "small", "", Origin::kMeasured, 1});
  t.AddKey("large", "large size");
  t.AddColumn({"large_rate", "rate ", "large", "", Origin::kMeasured, 1});
  for (const auto& [kind, curve] : device.arithmetic) {
    AddRow(OperationKindName(kind), /*products=*/true, curve.value,
           device.peaks.at(NumberType::kFp32).value.value(), &t);
  }
  const double bandwidth = device.memory_bandwidth.value.value();
  AddRow(OperationKindName(OperationKind::kElementwise), false, device.memory_efficiency.value,
         bandwidth, &t);
  for (const auto& [kind, curve] : device.memory_efficiency_of) {
    AddRow(OperationKindName(kind), /*products=*/false, curve.value, bandwidth, &t);
  }
  const Connection& link = measured.levels[0].connection;
  t.AddNote(absl::StrCat("A call takes ", ToString(device.launch_overhead.value),
                         " beside its work, a message ", ToString(link.latency.value), "."));
  return t;
}

}  // namespace pipelab
