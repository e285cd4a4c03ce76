// The part of Validate that looks at sizes, stage graph and placement, and at no action.
#ifndef PIPELAB_PIPELINES_IR_SHAPE_H_
#define PIPELAB_PIPELINES_IR_SHAPE_H_

#include "absl/status/status.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// InvalidArgument naming the stage, replica, edge or micro-batch that makes no sense.
absl::Status CheckShape(const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SHAPE_H_
