// SlimPipe's context exchange: who computes which part of whose attention, where token slices of
// equal lengths are passes of unequal attention.
//
//   PIPELAB_ASSIGN_OR_RETURN(SliceExchangePlan plan, PlanSliceExchange(schedule));
//   plan.passes[plan.of_action[device][position]].given;      // to whom, and which chunks
//
// Slice i of a sample attends to itself and to the i chunks of keys and values before it, each as
// long as a slice. Devices of a pipeline have consecutive slices at a time. So a device with much
// attention gives chunks to one with little: the queries of its slice and the keys and values of
// these chunks go there. An output and its log-sum-exp come back, and are merged with what was
// attended to at home. Backward the output and its gradient go along, and gradients of queries,
// keys and values come back. A device keeps its slice's own chunk and gives its earliest ones.
//
// Passes of one *slot* are under way at a time and meet in each of their attention layers. Forward
// k of a device is in one slot with forward k - 1 of the next device, and backward k with backward
// k + 1. Where such passes cannot be under way at a time, because neighbours run forwards and
// backwards in turn, as in 1F1B, so it is for every second device: the even ones meet, and the odd
// ones. The walk that finds this out lets no pass of a slot go on before all of them can. In
// warm-up and drain those meet that have a pass.
//
// The assignment is greedy: the device with most gives one chunk at a time to the one with least,
// until they differ by one chunk at most. Each pair of devices exchanges queries once.
//
// Li et al., "SlimPipe: Memory-Thrifty and Efficient Pipeline Parallelism for Long-Context LLM
// Training", SC 2025, arXiv 2504.14519.
#ifndef PIPELAB_PIPELINES_IR_SLICE_EXCHANGE_H_
#define PIPELAB_PIPELINES_IR_SLICE_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// Chunks [first, first + count) of the slice's sample that give away, and the device at the other
// end.
struct ChunkShare {
  int16_t device = 0;
  int16_t first = 0, count = 0;

  friend bool operator==(const ChunkShare& a, const ChunkShare& b) {
    return a.device == b.device && a.first == b.first && a.count == b.count;
  }
};

// A pass that gives or receives chunks; no pass does both.
struct PassExchange {
  Action action;     // F, B or I
  int32_t slot = 0;  // passes of one number are under way at a time
  std::vector<ChunkShare> given, received;

  // That it attends to in the end, its slice's own chunk not counted.
  int Chunks() const;
};

struct SliceExchangePlan {
  std::vector<PassExchange> passes;
  // [device][position in Schedule::order] Which of these; -1: none.
  std::vector<std::vector<int32_t>> of_action;
  // Passes of one kind are under way on every such device at a time: 1, or 2.
  int every = 1;
};

// [giver][helper] Chunks that move, of devices with so many each. Sums stay; afterwards numbers
// differ by one at most.
std::vector<std::vector<int>> SpreadChunks(std::vector<int> chunks);

// A valid schedule with token slices, one replica, and stages in turn on the devices (or groups of
// equal size). InvalidArgument says what it lacks, also where no two devices could exchange.
absl::StatusOr<SliceExchangePlan> PlanSliceExchange(const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_SLICE_EXCHANGE_H_
