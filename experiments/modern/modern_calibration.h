// One number for each source and GPU: what all efficiencies of its machine are times, so that the
// runs of one whole model come out. What calibrates is judged nowhere.
//
//   const auto factors = CalibrationFactors(rows, models, machines);
//   const auto factor = factors.find(RunsOf(row));          // none: 1
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"

namespace pipelab {

// Source, GPU and precision.
using ModernRuns = std::tuple<std::string, std::string, std::string>;
ModernRuns RunsOf(const ModernRow& row);

// Whether its measurement has gone into a machine.
bool Calibrates(const ModernRow& row);

// Of each of them that has rows to calibrate it, to two digits.
std::map<ModernRuns, double> CalibrationFactors(const std::vector<ModernRow>& rows,
                                                const std::vector<ModernModel>& models,
                                                const ModernMachines& machines);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_CALIBRATION_H_
