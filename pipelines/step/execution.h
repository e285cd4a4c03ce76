// What a training step loses if Megatron-LM executes it as in 2022, by its code of that year
// (schedules.py, p2p_communication.py, optimizer.py; between v2.6 of August 2021 and May 2023).
//
//   interleaved:P=8,T=8,V=4,M=8,execution=megatron2022
//   interleaved:P=8,T=8,V=4,M=8,no_data_overlap,execution=calls+inputs      two of its parts
//
// The parts:
//   calls           1F1B and interleaved, also over token slices: messages in calls of up to two or
//                   four, each of which ends with a synchronisation of host and device
//                   (ir/message_calls.h). Nothing runs beside them; the gathers of messages that
//                   came in parts, one after the other, and the launch gap follow.
//   forwards_first  interleaved with M = P: all forwards run before the first backward
//   inputs          each forward begins with two broadcasts of its tokens' sizes and tokens in the
//                   tensor-parallel group, and a synchronisation between them
//   step_checks     before the optimizer's step the host reads two sums over all devices: of
//                   infinities, and of squares for the norm
//   step_passes     unscaling, the norm and the copy of weights to 16 bits read and write 18 bytes
//                   per parameter in addition to the optimizer's
//
// megatron2022 is all of them, and no_data_overlap. Its steps then end in this order: sums of
// gradients over data-parallel copies, those of tied embeddings, checks, Adam, copy. Without
// whole_messages and sequence, messages are divided and gathered, the default then. Prices are the
// cluster's: a library's call, the links, and launch_gap.
//
// Not in it: the average of the losses over data-parallel copies, timers that synchronise (always
// on until August 2022: as if the launch gap were longer), and one sum for all stages of a device.
#ifndef PIPELAB_PIPELINES_STEP_EXECUTION_H_
#define PIPELAB_PIPELINES_STEP_EXECUTION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// Bits of StepConfig::execution.
enum ExecutionParts : uint32_t {
  kGroupedCalls = 1,
  kAllForwardsFirst = 2,
  kInputBroadcasts = 4,
  kStepChecks = 8,
  kStepPasses = 16,
  kAllExecutionParts = 31,
};

inline constexpr char kMegatron2022[] = "megatron2022";

// "plain", "calls+inputs", or "megatron2022" for all, where gradients are not summed beside
// compute.
std::string ExecutionName(uint32_t execution, bool overlap_data);
absl::StatusOr<uint32_t> ParseExecution(absl::string_view text);

struct StepConfig;
// How its messages go together; kNone without calls.
MessageCalls CallsOf(const StepConfig& config);
// InvalidArgument naming the key that does not suit the execution.
absl::Status CheckExecution(const StepConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_EXECUTION_H_
