// What schemes share that move micro-batches in units through equal slots: Chimera, BitPipe,
// Hanayo.
//
//   Schedule schedule = LoopedPipeline(params);
//   AddUpwardReplica(&schedule);
//   FillUnits(&schedule);
#ifndef PIPELAB_PIPELINES_SCHEDULES_BIDIRECTIONAL_H_
#define PIPELAB_PIPELINES_SCHEDULES_BIDIRECTIONAL_H_

#include "absl/status/status.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// OK, or InvalidArgument naming the option, its value and the nearest even ones.
absl::Status CheckEven(const char* option, int value, const char* reason);

// A second replica whose pipeline goes the other way: its stage s is on device P - 1 - d where the
// first one's is on d. FillUnits, or the scheme, says which micro-batches it takes.
void AddUpwardReplica(Schedule* schedule);

// Forwards and backwards in slots of equal length. A unit is P micro-batches, in equal parts for
// each replica; the i-th of a replica's part is in stage s at slot s + 2i forward and 2S-1-s + 2i
// backward, of S stages. Units follow one another every 2S slots, which is a device's work for one
// (direct concatenation). The last unit may be short. The order of slots is the order of actions;
// CHECK-fails when two of a device share one, which the placement must exclude.
//
// With two forwards a slot a unit is 2P micro-batches, the i-th's forward in slot s + 2 (i/2), and
// units follow one another every 3S slots.
//
// So many micro-batches stay `together` in one replica; they divide the number of micro-batches.
void FillUnits(Schedule* schedule, int forwards_per_slot = 1, int together = 1);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_BIDIRECTIONAL_H_
