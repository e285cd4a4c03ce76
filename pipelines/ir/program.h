// What each device executes: a schedule with its messages, gradient reductions and optimizer steps.
//
//   PIPELAB_ASSIGN_OR_RETURN(Program program, Lower(schedule, {}));
//   Simulate(program, costs);   Execute(program, modules, ...);   // both return a Trace
//
// The simulator and the runtime take the same Program, so what is simulated is what runs.
//
// Semantics of a device's instruction list, in order:
//  * kReceive posts a receive and does not wait. Its memory is charged to the device from here on.
//  * kWait waits for one posted receive; the compute that needs it follows.
//  * kCompute runs one action. A forward hands its outputs to kSend (other devices) or keeps them
//    for the local consumer; it keeps what its backward needs (only its inputs when the stage
//    recomputes). A backward (B, or W after I) frees that.
//  * kSend hands over one message, without waiting for the receiver. The device no longer pays for
//    its memory.
//  * kReduce sums the gradients of a reduction over its participants, all of which wait for each
//    other.
//  * kStep runs the optimizer of one stage.
//
// Receives are posted in the order in which the sends happen in one global order of all actions.
// Two things follow, and tests prove them: no deadlock even when sends wait for their receiver, and
// every pair of devices receives in the order in which it sends (NCCL matches by order).
#ifndef PIPELAB_PIPELINES_IR_PROGRAM_H_
#define PIPELAB_PIPELINES_IR_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

enum class OpCode : uint8_t { kCompute, kSend, kReceive, kWait, kReduce, kStep };

const char* OpCodeName(OpCode op);

struct Instruction {
  OpCode op = OpCode::kCompute;
  uint8_t replica = 0;  // of the action
  Action action;        // compute: the action; messages: the producer; step: kStep of the stage
  int32_t arg = -1;     // send, receive, wait: message id; reduce: reduction id
};

// One tensor on its way from one device to another: the activation of `edge` or its gradient.
// `micro_batch` is of the end of the edge that runs the smaller ones: a larger one takes several
// messages. Groups of different size exchange the row range [row_begin, row_end) / row_parts of the
// micro-batch's samples.
struct Message {
  int16_t from_device = 0, to_device = 0;
  int32_t edge = 0;
  int32_t micro_batch = 0;
  int16_t slice = 0;
  bool gradient = false;
  int16_t row_begin = 0, row_end = 1, row_parts = 1;
};

// A copy of a stage's parameters whose gradients are summed with others.
struct ReductionMember {
  int device = 0, replica = 0, stage = 0;
};

// Parameters that have several copies: a stage's replicas and group members, or a tied parameter
// that several stages hold. `parameter` is empty for all untied parameters of the stage, else the
// tie's name.
struct Reduction {
  std::string parameter;
  std::vector<ReductionMember> members;  // summed in this order: the same bits on every device
};

// A parameter with one value in several stages (tied embeddings).
struct Tie {
  std::string parameter;
  std::vector<int> stages;
};

struct Program {
  Schedule schedule;
  std::vector<std::vector<Instruction>> instructions;  // [device]
  std::vector<Message> messages;
  std::vector<Reduction> reductions;
};

struct LoweringOptions {
  std::vector<Tie> ties;
  // Adds reductions and optimizer steps at the end of each device's list (synchronous training).
  bool step = true;
};

// Fails with the validator's message when the schedule is not valid.
absl::StatusOr<Program> Lower(Schedule schedule, const LoweringOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_PROGRAM_H_
