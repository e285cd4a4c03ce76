// Configurations near one: what tests compare a search's best with.
#ifndef PIPELAB_TESTS_SUPPORT_RANDOM_CHANGES_H_
#define PIPELAB_TESTS_SUPPORT_RANDOM_CHANGES_H_

#include "pipelines/step/step_config.h"
#include "tools/base/draws.h"

namespace pipelab {

// As many random requests as PIPELAB_REQUESTS says (.ci/long), else `few`.
int NumRequests(int few);

// Another value of one key, or of two whose product stays; any key that a search varies.
void ChangeOne(Draws* draws, StepConfig* config);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_RANDOM_CHANGES_H_
