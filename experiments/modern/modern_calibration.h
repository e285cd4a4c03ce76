// Numbers that all efficiencies of a machine are times, so that the runs of one whole model come
// out. What calibrates is judged nowhere.
//
//   const ModernCalibration calibration = Calibrate(data.rows, data.models, machines);
//   calibration.FactorOf(row);                  // 1: nothing calibrates it
//   Calibrates(row);
//
// Dense models have one for each source, GPU and precision: that of the source's largest dense
// model.
//
// Models with experts were calibrated as well, by a rule that was written down before its first
// result: of each source and GPU the model with experts of the most parameters calibrates the
// others, among those of which the table has at most a tenth of the machine's rows, with what dense
// models use of it. That is printed beside the predictions, and not used for them
// (docs/modern_models.md).
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/optional.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"

namespace pipelab {

// Source, GPU and precision.
using ModernRuns = std::tuple<std::string, std::string, std::string>;
ModernRuns RunsOf(const ModernRow& row);

struct ModernFactor {
  std::string model;  // that gives it; "-Nlayers" forms are models of their own
  double factor = 1;  // to two digits
};

// Whether the row's measurement has gone into a machine.
bool Calibrates(const ModernRow& row);

struct ModernCalibration {
  // By source, GPU, and precision or "models with experts".
  std::map<ModernRuns, ModernFactor> factors;

  double FactorOf(const ModernRow& row) const;
  // Of a row of a model with experts, that of its machine; none where there is none, or the row
  // gives it.
  absl::optional<double> FactorOfExperts(const ModernRow& row) const;
};

ModernCalibration Calibrate(const std::vector<ModernRow>& rows,
                            const std::vector<ModernModel>& models, const ModernMachines& machines);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
