// Matched experiments: runs of one model on as many GPUs that differ in one switch, as their source
// set them up. A row named "...-ab-EXPERIMENT-NAME" is compared with the one of the experiment that
// the switch was turned from.
//
//   for (const ModernSwitch& s : SwitchesOf(all)) { s.measured(); s.predicted(); }
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_SWITCHES_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_SWITCHES_H_

#include <vector>

#include "experiments/modern/modern_results.h"

namespace pipelab {

struct ModernSwitch {
  const ModernResult* before = nullptr;
  const ModernResult* after = nullptr;

  // Times after the switch over those before, less 1.
  double measured() const { return *after->row->Seconds() / *before->row->Seconds() - 1; }
  double predicted() const { return after->seconds / before->seconds - 1; }
  // Slower or faster on both sides.
  bool right() const { return measured() * predicted() > 0; }
};

// The switches both of whose runs are predicted, in the order of the rows.
std::vector<ModernSwitch> SwitchesOf(const std::vector<ModernResult>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_SWITCHES_H_
