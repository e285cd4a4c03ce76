// What schemes share that hold several stages of one replica on a device: the zig-zag placement,
// and weight gradients that fill the gaps of a device.
//
//   Schedule schedule = ZigZagPipeline(params);  // two chunks: a V
//   ...                                          // schedule.order: F and I
//   FillGapsWithWeights(&schedule, 2 * params.devices);
#ifndef PIPELAB_PIPELINES_SCHEDULES_V_SHAPE_H_
#define PIPELAB_PIPELINES_SCHEDULES_V_SHAPE_H_

#include "absl/status/status.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// A schedule without actions: a chain of devices * chunks stages that runs down the devices, then
// up, then down again. Stages at a turn share a device, so that hand-over needs no message.
Schedule ZigZagPipeline(const SchemeParams& params);

// OK, or InvalidArgument naming --chunks: the scheme is a V of two stages a device.
absl::Status CheckTwoChunks(const SchemeParams& params);

// Adds the W of every I to an order of F and I. With F = I = W = 1 and no communication, a device
// runs a W, the one of the oldest I, whenever its next F or I cannot run: because it waits for
// another device, or, for an F, because the device holds `max_activations` already (released at W).
// Weight gradients of a stage come in the order of their input gradients. O(actions + gaps).
//
// Every F must be able to run once all W before it have run, as it is when `max_activations` is not
// below what the order of F and I itself holds.
void FillGapsWithWeights(Schedule* schedule, int max_activations);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_V_SHAPE_H_
