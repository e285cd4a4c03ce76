#include "experiments/modern/modern_calibration.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// The largest dense model of a source calibrates its machines. nanotron's runs with pipelines took
// times that no size explains, its largest model's most of all, so it calibrates nothing.
const std::map<std::string, std::string> kCalibrating = {{"dgxc", "nemotron4-340b"},
                                                         {"foundry", "mpt-70b"}};

// The mean of |log(predicted / measured)| where all efficiencies are times `factor`; none where no
// step can be predicted.
absl::optional<double> ErrorWith(const std::vector<std::pair<double, ModernStep>>& runs,
                                 double factor) {
  double sum = 0;
  for (const auto& [seconds, step] : runs) {
    ModernStep changed = step;
    changed.cluster = WithEfficiency(step.cluster, factor);
    const absl::StatusOr<StepPrediction> p = Predict(changed);
    if (!p.ok()) return absl::nullopt;
    sum += std::abs(std::log(ToSeconds(p->step_time) / seconds));
  }
  return sum / static_cast<double>(runs.size());
}

bool SetsFactor(const ModernRow& row) {
  const auto model = kCalibrating.find(row.group);
  return model != kCalibrating.end() && model->second == row.model;
}

}  // namespace

ModernRuns RunsOf(const ModernRow& row) { return {row.group, row.gpu, row.precision}; }

// And dgx-h100's share of the peak in products is from GPT-3 175B of the DGX Cloud recipes.
bool Calibrates(const ModernRow& row) {
  return SetsFactor(row) || (row.group == "dgxc" && absl::StartsWith(row.model, "gpt3-175b"));
}

std::map<ModernRuns, double> CalibrationFactors(const std::vector<ModernRow>& rows,
                                                const std::vector<ModernModel>& models,
                                                const ModernMachines& machines) {
  std::map<ModernRuns, std::vector<std::pair<double, ModernStep>>> runs;
  for (const ModernRow& row : rows) {
    if (!SetsFactor(row)) continue;
    absl::StatusOr<ModernStep> step = StepOfRow(row, models, machines);
    if (step.ok()) runs[RunsOf(row)].push_back({*row.Seconds(), *std::move(step)});
  }
  std::map<ModernRuns, double> factors;
  for (const auto& [key, of_key] : runs) {
    double least = std::numeric_limits<double>::infinity();
    for (int percent = 50; percent <= 160; ++percent) {
      const absl::optional<double> error = ErrorWith(of_key, percent / 100.0);
      if (!error.has_value() || *error >= least) continue;
      least = *error;
      factors[key] = percent / 100.0;
    }
  }
  return factors;
}

}  // namespace pipelab
