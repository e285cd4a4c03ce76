// A lower bound of a step. Private to search.
#ifndef PIPELAB_PIPELINES_SEARCH_STEP_LEAST_H_
#define PIPELAB_PIPELINES_SEARCH_STEP_LEAST_H_

#include "tools/base/units.h"

namespace pipelab {

// Nothing, of schedules that WalkOrder does not take: token slices, groups of devices.
struct StepLeast {
  Nanoseconds time;
  Bytes memory;  // of the largest device
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_STEP_LEAST_H_
