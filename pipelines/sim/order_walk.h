// A schedule's order played without lowering: lower bounds of the times and activations of its
// programs, for a fraction of the work of lowering and simulating it.
//
//   Program order;                              // its schedule alone
//   order.schedule = *MakeSchedule("1f1b", sizes);
//   OrderWalk walk = WalkOrder(order, costs, [&](int from, int to) { return hop; });
//   walk.devices[0].end <= Simulate(*Lower(order.schedule, {}), costs)->makespan
//
// Each action begins when the one before it on its device has ended and what it waits for has
// arrived, as in simulate.h; what is left out only ever takes time, or memory, more:
//  * messages of a pair of devices do not wait for one another, and links are not shared;
//  * no collective holds anything up, no copy to the host, and there are no steps;
//  * a receive is posted when its message is waited for, and not before;
//  * in calls (Program::calls), a device waits for its own messages and gathers them, but not for
//    what else is in the calls of its neighbours.
// Every time is a maximum of sums of times, so leaving out makes none of them later; the order of a
// device's instructions, and with it its memory, is otherwise that of the program. Memory does not
// depend on times: OrderPeaks, a fraction of that work again, finds it alone.
#ifndef PIPELAB_PIPELINES_SIM_ORDER_WALK_H_
#define PIPELAB_PIPELINES_SIM_ORDER_WALK_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "tools/base/units.h"

namespace pipelab {

struct OrderWalk {
  struct Device {
    Nanoseconds end;            // of its last action, and without CostTable::overlap its sends
    Nanoseconds last_gradient;  // end of its last weight gradient
  };
  std::vector<Device> devices;
  // [replica][stage] The end of its last weight gradient.
  std::vector<std::vector<Nanoseconds>> last_gradient;
};

// Groups of one device, whole samples, micro-batches of one size, and gradients of the same one; an
// edge may have none where its stage takes one from another.
bool CanWalkOrder(const Schedule& schedule);

// The schedule and `calls` of `order` are read: a valid schedule that CanWalkOrder (CHECKed). The
// network, speeds and measured times of `costs` are not. `hop` gives the way between two devices.
// `begin`: [device] when its first action may begin; empty: 0.
OrderWalk WalkOrder(const Program& order, const CostTable& costs,
                    absl::FunctionRef<PathCost(int from, int to)> hop,
                    const std::vector<Nanoseconds>& begin = {});

// [device] The most activations that it has at a time. Of `costs`, memory and bytes are read.
std::vector<Bytes> OrderPeaks(const Program& order, const CostTable& costs);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SIM_ORDER_WALK_H_
