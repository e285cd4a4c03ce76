#include "experiments/modern/modern_calibration.h"

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "pipelines/cluster/kernel_rates.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

struct CalibratingRun {
  double seconds;  // measured
  ModernStep step;
  ModernStepModel model;
};

absl::StatusOr<double> ErrorWith(const std::vector<CalibratingRun>& runs, double sustained) {
  double sum = 0;
  for (const CalibratingRun& run : runs) {
    ModernStep changed = run.step;
    DeviceSpec& device = changed.cluster.device;
    if (device.rates == nullptr) return absl::NotFoundError("a calibrating machine has no rates");
    auto rates = std::make_shared<KernelRates>(*device.rates);
    rates->sustained = {sustained, "tried"};
    device.rates = std::move(rates);
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, run.model.Predict(changed));
    sum += std::abs(std::log(ToSeconds(p.step_time) / run.seconds));
  }
  return sum / static_cast<double>(runs.size());
}

}  // namespace

ModernRuns RunsOf(const ModernRow& row) { return {row.group, row.gpu, row.precision}; }

bool Calibrates(const ModernRow& row) {
  if (row.gpu != "H100" || row.precision != "BF16") return false;
  if (row.group == "foundry") return row.model == "mpt-70b";
  return row.group == "dgxc" &&
         (row.model == "nemotron4-340b" || absl::StartsWith(row.model, "gpt3-175b"));
}

absl::StatusOr<double> BestSustained(const std::vector<ModernRow>& rows,
                                     const std::vector<ModernModel>& models,
                                     const ModernMachines& machines) {
  std::vector<CalibratingRun> runs;
  for (const ModernRow& row : rows) {
    if (!Calibrates(row)) continue;
    absl::StatusOr<ModernStep> step = StepOfRow(row, models, machines);
    if (!step.ok() || step->assumed) continue;
    PIPELAB_ASSIGN_OR_RETURN(ModernStepModel model, ModernStepModel::Of(*step));
    runs.push_back({*row.Seconds(), *std::move(step), std::move(model)});
  }
  if (runs.empty()) return absl::NotFoundError("no row calibrates");
  double least = std::numeric_limits<double>::infinity();
  int best = 0;
  for (int percent = 70; percent <= 100; ++percent) {
    PIPELAB_ASSIGN_OR_RETURN(const double error, ErrorWith(runs, percent / 100.0));
    if (error >= least) continue;
    least = error;
    best = percent;
  }
  return best / 100.0;
}

}  // namespace pipelab
