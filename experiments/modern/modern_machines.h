// The machines of the published rows, from the catalogue.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ModernMachines machines, LoadModernMachines());
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_MACHINES_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_MACHINES_H_

#include "absl/status/statusor.h"
#include "experiments/modern/modern_prediction.h"

namespace pipelab {

absl::StatusOr<ModernMachines> LoadModernMachines();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_MACHINES_H_
