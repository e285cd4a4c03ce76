// What Validate asks of weight versions beyond their existence. Private to the target.
//
//   PIPELAB_RETURN_IF_ERROR(CheckVersions(schedule));   // of an order that has steps (S)
//
// Weight stashing (Narayanan et al., "PipeDream", SOSP 2019): a backward is the derivative of its
// forward only with that forward's weights.
#ifndef PIPELAB_PIPELINES_IR_VERSION_CHECKS_H_
#define PIPELAB_PIPELINES_IR_VERSION_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

template <typename... Parts>
absl::Status InvalidAt(int device, int64_t position, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("device ", device, ", position ", position, ": ", parts...));
}

// Every pass of a micro-batch on a device uses the weight version of its forward; each step has
// gradients to apply; every gradient is in a step. The order is complete and its versions exist.
absl::Status CheckVersions(const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_VERSION_CHECKS_H_
