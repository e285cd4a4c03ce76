// A call that fails because *another* rank ended the run returns that rank's error, marked as a
// follow-up; the rank whose own call failed gets it unmarked. So the first real error can be told
// from its echoes, whichever thread or process reports first.
#ifndef PIPELAB_KERNELS_COMM_FOLLOW_UP_H_
#define PIPELAB_KERNELS_COMM_FOLLOW_UP_H_

#include "absl/status/status.h"

namespace pipelab {

absl::Status MarkAsFollowUp(absl::Status error);
bool IsFollowUp(const absl::Status& status);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_FOLLOW_UP_H_
