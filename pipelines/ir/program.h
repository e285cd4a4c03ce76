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
//  * kCompute runs one action, which may compute a part of another's attention, or have others
//    compute a part of its own (Program::exchanges): these passes meet in each attention layer. A
//    forward hands its outputs to kSend (other devices) or keeps them for the local consumer; it
//    keeps what its backward needs (only its inputs when the stage recomputes). A backward (B, or W
//    after I) frees that.
//  * kSend hands over one message, without waiting for the receiver. The device no longer pays for
//    its memory.
//  * kSynchronise ends a call of the communication library (Program::calls): the sends, receives
//    and waits since the last compute or kSynchronise were issued together, and the device resumes
//    when all of them are over, its sends included.
//  * kReduce begins to sum the gradients of a reduction over its members, and kReduceWait waits for
//    the sum. In between nothing adds to these gradients.
//  * Where weights travel (Schedule::weights_travel), a message may be a hop: of a stage's weights,
//    which the sender keeps until its kRelease, or of the sum of its gradients so far, which the
//    sender gives up. kWait adds the device's own gradients to those that came.
//  * kGather begins to put together a stage's parameters from their parts on several devices, and
//    kGatherWait waits for them. kRelease frees them; the device's own part stays.
//  * kNorm begins to sum the squares of all gradients over all devices, for their global norm;
//    kNormWait waits for the sums. In between and until the steps nothing adds to any gradient.
//  * kStep runs the optimizer of one stage; where parameters are sharded, on the device's part.
//  * kOffload begins to copy what a forward keeps to the host's memory, kReload to copy it back,
//    and kHostWait waits for one of them. A device's copies follow one another on its host link.
//    What was offloaded is the device's until its kHostWait, which comes before the device's next
//    kOffload or kReload; a reload's memory is the device's from kReload on, and its kHostWait
//    comes before the backward. So peaks follow from the order, whatever copies take.
//  * kFill: from here until what the device waits for next, work of other jobs may run, so long and
//    with so much memory as Program::fills says (pipelines/fill/fill_pass.h writes them).
//
// Receives are posted in the order in which the sends happen in one global order of all actions,
// and a collective stands in the lists of all its members at one point of that order. Three things
// follow, and tests prove them: no deadlock even when sends wait for their receiver and collectives
// for all members, every pair of devices receives in the order in which it sends, and any two
// devices begin and await the collectives that they share in one order (NCCL matches by order).
#ifndef PIPELAB_PIPELINES_IR_PROGRAM_H_
#define PIPELAB_PIPELINES_IR_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/sharding.h"
#include "pipelines/ir/slice_exchange.h"
#include "tools/base/units.h"

namespace pipelab {

enum class OpCode : uint8_t {
  kCompute,
  kSend,
  kReceive,
  kWait,
  kSynchronise,
  kReduce,
  kReduceWait,
  kGather,
  kGatherWait,
  kNorm,
  kNormWait,
  kRelease,
  kStep,
  kFill,
  kOffload,
  kReload,
  kHostWait,
};
inline constexpr OpCode kLastOpCode = OpCode::kHostWait;

const char* OpCodeName(OpCode op);
inline bool IsHostTransfer(OpCode op) { return op >= OpCode::kOffload; }  // or its wait
// A reduction, gather or norm, its wait, or a release.
inline bool IsCollective(OpCode op) { return op >= OpCode::kReduce && op <= OpCode::kRelease; }

// What a kReduceWait, kGatherWait or kNormWait waits for.
inline bool BeginsCollective(OpCode op) {
  return op == OpCode::kReduce || op == OpCode::kGather || op == OpCode::kNorm;
}

struct Instruction {
  OpCode op = OpCode::kCompute;
  uint8_t replica = 0;  // of the action
  // compute, offload, reload: the action; host wait: whose; messages: the producer; else: kStep of
  // the stage
  Action action;
  // send, receive, wait: message; reduce*: reduction; gather*, release: gather; norm*: 0;
  // release of weights that came by a hop: its message; synchronise: the call's number on its
  // device; offload, reload, host wait: the copy's; fill: its own; compute: its exchange, or -1
  int32_t arg = -1;
};

// One tensor on its way from one device to another: the activation of `edge` or its gradient; or a
// hop, of a stage's weights or of their gradients.
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
  int16_t hop_of_stage = -1;  // not -1: a hop, with no edge

  bool is_hop() const { return hop_of_stage >= 0; }
};

// A copy of a stage's parameters, or of the device's part of them.
struct StageCopy {
  int device = 0, replica = 0, stage = 0;
};

// Gradients that have several copies: of a stage's replicas and group members, or of a tied
// parameter that several stages hold. `parameter` is empty for all untied parameters of the stage,
// else the tie's name. Of sharded gradients, one that does not scatter sums the members' equal
// parts.
struct Reduction {
  std::string parameter;
  // Summed in the order of their devices: the same bits on every device.
  std::vector<StageCopy> members;
  bool scatter = false;  // each device gets its part of the sum, and not all of it
};

// The untied parameters of a stage, put together on all members from the part of each device.
struct Gather {
  std::vector<StageCopy> members;
};

// The global norm of a step's gradients: the squares of each parameter value of the model are a
// term of their own, so that everybody adds the terms in one order. A copy has the terms of what it
// answers for (NormShareOf), 0 in the place of the others.
struct NormSum {
  int64_t values = 0;              // terms, 4 bytes each
  std::vector<StageCopy> members;  // all copies of all stages
  // On paper alone: sums like it, one after the other, each of which the host reads before it goes
  // on.
  int rounds = 1;
};

// A parameter with one value in several stages (tied embeddings).
struct Tie {
  std::string parameter;
  std::vector<int> stages;
};

// What other jobs may do in a gap, and what a plan has them do there.
struct Fill {
  Nanoseconds time;  // at the most, and
  Bytes bytes;       // beside what the device holds
  // On paper: pieces [first_piece, first_piece + pieces) of a job, and what they take. Each job of
  // a gap has a fill. -1: none is planned; the runtime takes what fits (fill_runner.h).
  int job = -1;
  int64_t first_piece = 0, pieces = 0;
  Nanoseconds work;
};

// Which messages of a device go in one call of the communication library (message_calls.h).
enum class MessageCalls : uint8_t {
  kNone,            // each is on its own
  kOneMessage,      // each, but in a call, which ends with a synchronisation
  kOneNeighbour,    // those with one neighbour between two passes
  kBothNeighbours,  // all between two passes, or two pairs of a forward and a backward
};

struct Program {
  Schedule schedule;
  std::vector<std::vector<Instruction>> instructions;  // [device]
  std::vector<Message> messages;
  std::vector<Reduction> reductions;
  std::vector<Gather> gathers;
  absl::optional<NormSum> norm;
  std::vector<Fill> fills;
  std::vector<PassExchange> exchanges;  // of attention between slices; empty: each pass has its own
  MessageCalls calls = MessageCalls::kNone;
  Sharding sharding = Sharding::kReplicated;
  // Devices of a group that divide what is sharded (SharingSets); 0: all of them, and where only
  // the optimizer is sharded all copies.
  int shards = 0;
  // On paper alone: each device of a group stands for so many that do the same, so that a group of
  // two stands for one of twice as many. Parts of sharded parameters are that much smaller; links
  // of the cost table must know it, too (pipelines/step/step.h). With `shards` it is so in each
  // set, and the sets may stand for more of them. The runtime takes 1 only.
  int devices_per_member = 1;
  // So many devices that follow one another in a stage's group have different experts
  // (TensorParallel::expert_copies). A stage's reductions and gathers are of its other parameters
  // over all members, and then of its experts over those that have the same. Divides the copies.
  int expert_copies = 1;
};

struct LoweringOptions {
  // A partition's stage graph, which the program's schedule gets in the place of its own
  // (WithStages).
  absl::optional<StageGraph> stages;
  std::vector<Tie> ties;
  // Adds reductions and optimizer steps (synchronous training).
  bool step = true;
  // Reductions begin once the last gradient is there, beside the rest of the backwards; else at the
  // end. Unset: as the schedule says. Bits are the same.
  absl::optional<bool> eager_reductions;
  Sharding sharding = Sharding::kReplicated;
  int shards = 0;  // Program::shards: at least 2, and divides each group
  Residency residency = Residency::kRun;
  // Where gradients or values are sharded: gathers begin a run ahead, and the sum of a run's
  // gradients is awaited a run later. One more stage's weights and gradients in memory, for
  // communication beside compute.
  bool overlap = false;
  // Before the steps, the devices sum the squares of all gradients for their global norm: how many
  // parameter values the model has. 0: no norm.
  int64_t norm_values = 0;
  int norm_rounds = 1;    // NormSum::rounds
  int expert_copies = 1;  // Program::expert_copies
  // Passes of token slices spread their attention (PlanSliceExchange).
  bool slice_exchange = false;
  // Not kNone: the schedule is 1F1B's or interleaved 1F1B's, or that of their slices, and
  // collectives are at the end.
  MessageCalls calls = MessageCalls::kNone;
};

// Which part of a stage's untied parameters the copy has.
Shard ShardOf(const Program& program, const StageCopy& copy);

// Whether an untied sum is one of equal parts, between sets or replicas, whose members have the
// same experts.
inline bool SumsEqualParts(const Program& program, bool scatter) {
  return !scatter && program.sharding != Sharding::kReplicated;
}

// The devices that have the experts of `device`, ascending, among `devices`, which share a
// collective of the stage's parameters: these share one more, of the experts. `equal_parts`: the
// collectives are sums between replicas, whose members have one part of the same experts.
std::vector<int> ExpertDevices(const Program& program, const std::vector<int>& devices, int device,
                               bool equal_parts);

// What a copy adds to the global norm: over all copies, each gradient once.
struct NormShare {
  bool own = false;               // untied parameters; where they are sharded, the copy's part
  bool experts = false;           // those of them that only some copies have (expert_copies)
  std::vector<std::string> ties;  // parameters that other stages have too
};
NormShare NormShareOf(const Program& program, const StageCopy& copy);

// Fails with the validator's message when the schedule is not valid; InvalidArgument when the
// options do not suit it.
absl::StatusOr<Program> Lower(Schedule schedule, const LoweringOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_PROGRAM_H_
