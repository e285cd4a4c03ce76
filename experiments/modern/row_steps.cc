#include "experiments/modern/row_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "experiments/report/median.h"
#include "pipelines/cluster/device.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {

MachineRange RangeOf(const ClusterSpec& cluster) {
  const EfficiencyRange range = EfficiencyRangeOf(cluster);
  return {cluster, WithEfficiency(cluster, range.best), WithEfficiency(cluster, range.worst)};
}

absl::StatusOr<RowStep> PredictRow(std::string name, double measured, const MachineRange& machine,
                                   StepOn step) {
  RowStep s;
  s.name = std::move(name);
  s.measured = measured;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, step(machine.cluster));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction best, step(machine.best));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction worst, step(machine.worst));
  s.seconds = ToSeconds(p.step_time);
  s.least = ToSeconds(best.step_time);
  s.most = ToSeconds(worst.step_time);
  s.gib = ToGiB(p.largest_device);
  return s;
}

Table RowTable(const std::string& id, const std::string& title, const std::vector<RowStep>& steps) {
  const bool memory = std::any_of(steps.begin(), steps.end(),
                                  [](const RowStep& s) { return s.measured_gib.has_value(); });
  Table t(id, title);
  t.AddKey("row");
  t.AddColumn({"measured", "measured", "", "s", Origin::kPublished, 3});
  t.AddColumn({"predicted", "predicted", "", "s", Origin::kSimulated, 3});
  t.AddColumn({"error", "predicted against measured", "error", "%", Origin::kComputed, 1});
  t.AddColumn(
      {"in_range", "measured within the predicted range", "in range", "", Origin::kComputed, 0});
  if (memory) {
    t.AddColumn({"memory_measured", "measured peak", "peak", "GiB", Origin::kPublished, 1});
    t.AddColumn({"memory", "predicted", "", "GiB", Origin::kSimulated, 1});
    t.AddColumn({"memory_error", "error", "", "%", Origin::kComputed, 1});
  }
  for (const RowStep& s : steps) {
    std::vector<Cell> cells = {Label(s.name), Published(s.measured, "read"), Simulated(s.seconds),
                               Computed(100 * s.error()), Computed(s.in_range() ? 1 : 0)};
    if (memory) {
      const bool has = s.measured_gib.has_value();
      cells.push_back(has ? Published(*s.measured_gib, "read") : Missing("not printed"));
      cells.push_back(Simulated(s.gib));
      cells.push_back(has ? Computed(100 * s.memory_error()) : Missing("not printed"));
    }
    t.AddRow(std::move(cells));
  }
  return t;
}

Claim MedianClaim(Claim claim, const std::vector<RowStep>& steps, double bar,
                  const std::string& reason) {
  claim.unit = "%";
  if (steps.empty()) {
    NotMade(&claim, "no row could be predicted");
    return claim;
  }
  std::vector<double> errors;
  for (const RowStep& s : steps) errors.push_back(std::abs(s.error()));
  const auto in_range =
      std::count_if(steps.begin(), steps.end(), [](const RowStep& s) { return s.in_range(); });
  const double median = MedianOf(std::move(errors));
  Found(&claim, Origin::kSimulated, 100 * median,
        absl::StrFormat("%d of %d within the predicted range", in_range, steps.size()));
  MetIf(&claim, median <= bar, absl::StrFormat("median at most %.0f %%", 100 * bar), reason);
  return claim;
}

}  // namespace pipelab
