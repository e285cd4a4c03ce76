// Calls of a communication library that take several messages and end with a synchronisation of
// host and device, as in Megatron-LM until 2023 (p2p_communication.py, schedules.py): what is sent
// after one pass and what the next one needs go together, and nothing else runs meanwhile.
//
//   LoweringOptions options;
//   options.calls = MessageCalls::kBothNeighbours;
//   Lower(interleaved, options)    // calls it; nothing else need to
//
// kOneNeighbour, 1F1B: where a forward and a backward follow one another, what the first sends and
// the second receives is one call; between two forwards, or two backwards, it is two. A call
// without messages is none. A middle device with w = min(P - 1 - d, M) forwards of warm-up has
// 2M + 2w + 1 calls, one fewer where w = M, the first one M + w, the last one M + 1.
//
// kOneMessage, 1F1B: the same with two calls in the place of that one, so that each message has its
// own at either end. Devices of even number send first there, the others receive first.
//
// kBothNeighbours, interleaved 1F1B with V > 1 and M a multiple of P > 2: one call after each
// forward of the warm-up, each pair of a forward and a backward, and each backward of the
// cool-down, messages or not; one before all, where the device has something to receive. With W
// forwards of warm-up that is MV + W + 1 calls, MV + W on the first device. Where all forwards run
// first (M = P), the first gradient is received by a call of its own, on all devices but the last.
//
// With token slices (Seq1F1B, arXiv 2406.03488; its authors' code has kOneMessage and
// kBothNeighbours) each slice is what a micro-batch is here, and the warm-up has S - 1 forwards
// more.
#ifndef PIPELAB_PIPELINES_IR_MESSAGE_CALLS_H_
#define PIPELAB_PIPELINES_IR_MESSAGE_CALLS_H_

#include "absl/status/status.h"
#include "pipelines/ir/program.h"

namespace pipelab {

// Puts the messages of a lowered program into calls, and a kSynchronise at the end of each.
// InvalidArgument saying what does not suit them: another schedule, messages between devices that
// are no neighbours, collectives before the last pass, calls that would wait for one another.
absl::Status GroupMessages(MessageCalls calls, Program* program);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_MESSAGE_CALLS_H_
