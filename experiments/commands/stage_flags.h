// The options that describe stages: --edges, --stage_devices, --stage_micro_batches.
//
//   SchemeParams params;
//   params.devices = 5;
//   PIPELAB_RETURN_IF_ERROR(ReadStageFlags(&params));  // --edges=0-1,1-4,2-3,3-4
//
// Errors: InvalidArgument naming the option, its value and what would be right.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_STAGE_FLAGS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_STAGE_FLAGS_H_

#include "absl/status/status.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// Sets what the flags give. There are as many stages as --stage_devices has numbers, else
// params->devices.
absl::Status ReadStageFlags(SchemeParams* params);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_STAGE_FLAGS_H_
