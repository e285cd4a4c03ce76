// Where weights and their gradients are, turn by turn, when they travel and activations stay (Lin
// et al., "WeiPipe: weight pipeline parallelism for communication-effective long-context large
// model training", PPoPP 2025). What Lower follows; a serial loop that adds so has the same bits.
//
//   PIPELAB_ASSIGN_OR_RETURN(const WeightRing ring, WeightRing::Make(schedule));
//   for (int t = 0; t < ring.num_turns(); ++t) {
//     for (const WeightHop& hop : ring.weights[t]) ...     // under way beside turn t
//   }
//
// P devices, each with all P stages of its own micro-batches. In turn t device d runs the forward
// of stage (t - d) mod P, or the backward of stage (P - 1 - t + d) mod P, or both. So device d + 1
// needs in each turn what device d needed in the one before. Those two orders are two slots, in
// which weights move one device on a turn. An action runs in the first turn that is not before that
// of the action before it and has its stage in the kind's slot.
//
// Weights start at their owner (OwnerOf), which always has them. Each other device has those of a
// slot's stage for one turn: they come beside the turn before it, and are sent on at its begin. A
// device is not sent what it has already, in the other slot.
//
// The sum of a stage's gradients starts as the first B's or W's and moves one device on beside each
// turn. The device there adds its own gradients at the turn's end. So they are added device by
// device, and in the order of micro-batches where device d has micro-batches d, P + d, 2P + d and
// all devices wait equally long with their W's. After the last of them the sum moves on to the
// owner. A W is in the backwards' slot, for the sum. It needs the weights, too: our layers make the
// norm before a product again for the product's weight gradient.
//
// In groups (Schedule::weight_group; Wu et al., "TawPipe", AAAI 2026) all devices of group g run
// the turn that device g of a ring would. Weights come from their owner to one device of each other
// group, its gate for the stage, and beside the next turn from there to the rest of the group. They
// set out so early that a group need not wait for the turns of those before it. Behind a group's
// backwards the sum of the stage's gradients comes to its gate, over two turns, from the gate of
// the group before, and then the group's gradients do, in the order of devices.
#ifndef PIPELAB_PIPELINES_IR_WEIGHT_RING_H_
#define PIPELAB_PIPELINES_IR_WEIGHT_RING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

struct WeightHop {
  int stage = 0, from = 0, to = 0;
  int turns = 1;  // so many of it is under way beside
};

struct WeightRing {
  // InvalidArgument where the schedule's replicas are not each a device with all stages, as many
  // as devices; they are valid otherwise.
  static absl::StatusOr<WeightRing> Make(const Schedule& schedule);

  int num_turns() const { return static_cast<int>(weights.size()); }

  struct Place {
    int stage = 0, device = 0;
  };
  std::vector<std::vector<int32_t>> turns;  // [device][position in its order]
  // [turn in whose begin it begins]
  std::vector<std::vector<WeightHop>> weights;    // needed in the turn after their last
  std::vector<std::vector<WeightHop>> gradients;  // added to at the end of their last
  std::vector<std::vector<Place>> released;       // [turn] weights not needed in the next
  // [stage][micro-batch] The place of its gradients among what is added to the sum, from 0. Those
  // of one device and turn have one place: they are added up first.
  std::vector<std::vector<int>> sums;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_WEIGHT_RING_H_
