// Numbers that all efficiencies of a machine are times, so that the runs of one whole model come
// out. What calibrates is judged nowhere.
//
//   const ModernCalibration calibration = Calibrate(data.rows, data.models, machines);
//   calibration.FactorOf(row);                  // 1: nothing calibrates it
//   calibration.Calibrates(row);
//
// Dense models have one for each source, GPU and precision that the source's largest dense model
// gives.
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
  int rows = 0;       // of it
  double factor = 1;  // to two digits
};

struct ModernCalibration {
  // By source, GPU, and precision or kExperts.
  std::map<ModernRuns, ModernFactor> factors;
  std::map<std::string, bool> has_experts;  // by model

  // Whether its measurement has gone into a machine.
  bool Calibrates(const ModernRow& row) const;
  double FactorOf(const ModernRow& row) const;
  // Of a model with experts, that of its machine; none where there is none, or the row gives it.
  absl::optional<double> FactorOfExperts(const ModernRow& row) const;
};

inline constexpr char kExperts[] = "models with experts";

ModernCalibration Calibrate(const std::vector<ModernRow>& rows,
                            const std::vector<ModernModel>& models, const ModernMachines& machines);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
