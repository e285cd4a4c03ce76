// Small schedules for tests of the IR: chains and graphs with groups, replicas, slices and split
// backwards, that are right by construction (not by Validate).
#ifndef PIPELAB_TESTS_SUPPORT_TEST_SCHEDULES_H_
#define PIPELAB_TESTS_SUPPORT_TEST_SCHEDULES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipelines/ir/schedule.h"

namespace pipelab {

// Device d's list from a line such as "0F0 0F1 0B0@1"; fails the process on bad text.
std::vector<Action> Actions(const std::string& line);

// A chain with one stage a device and these lists.
Schedule ChainOf(int num_micro_batches, const std::vector<std::string>& lines);

// One stage on a group of four devices, with one forward and one backward.
Schedule OneStageOnFour();

// Everything at once: stages, graph and placement as given; the order of each device follows from
// running micro-batches through the graph with a random choice among the actions that are ready.
struct RandomShape {
  StageGraph stages;
  Placement placement;  // replica_of_micro_batch included
  std::vector<int32_t> micro_batches_of_stage = {};
  int num_slices = 1;
  bool split_backward = false;
  bool recompute = false;
  bool offload = false;  // every other micro-batch goes to the host and comes back
};
Schedule RandomOrder(const RandomShape& shape, uint64_t seed);

// A grid of shapes: chains, a diamond, skip connections, groups and micro-batches of different
// size, two replicas, slices, gradients that are late or none.
std::vector<RandomShape> Shapes();

// Valid schedules of what no shape has: a decoding, workers that prepare, passes of replay, merged
// passes, and weights that travel round rings of devices and of groups.
std::vector<Schedule> OtherSchedules();

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_TEST_SCHEDULES_H_
