// The parts of a predicted step in seconds, and in which one step loses most against another.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepPart> a, SecondsOfParts(on, prediction));
//   MostLost(a, b).name;       // "recomputation"
#ifndef PIPELAB_EXPERIMENTS_MODERN_STEP_PARTS_H_
#define PIPELAB_EXPERIMENTS_MODERN_STEP_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/step/step.h"

namespace pipelab {

struct StepPart {
  std::string name;
  double seconds = 0;
};

// The same parts of every step, in the same order.
absl::StatusOr<std::vector<StepPart>> SecondsOfParts(const StepModel& on, const StepPrediction& p);

// The part that `slower` has most more of than `other`, with the difference; without a name if it
// has more of none.
StepPart MostLost(const std::vector<StepPart>& slower, const std::vector<StepPart>& other);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_STEP_PARTS_H_
