#include <string>

#include "absl/flags/flag.h"
#include "experiments/simulate/simulated_run.h"

ABSL_FLAG(std::string, forward, "1", "time of a forward, in any unit; or one per stage: 1,2,1");
ABSL_FLAG(std::string, backward_input, "1",
          "time of the input part of a backward; a fused backward costs both parts");
ABSL_FLAG(std::string, backward_weight, "1", "time of the weight part of a backward");
ABSL_FLAG(std::string, p2p_latency, "0", "time of a message between two devices");
ABSL_FLAG(std::string, recompute_time, "",
          "time of a recompute, or one per stage; empty: that of a forward");
ABSL_FLAG(std::string, step, "",
          "time of an optimizer step, or one per stage; empty: no steps unless --reduce is set");
ABSL_FLAG(
    std::string, reduce, "",
    "time of a gradient reduction between copies of a stage; empty: none unless --step is set");
ABSL_FLAG(std::string, bytes, "",
          "size of a message, such as 64MiB; or one per edge of the stage graph: 8MB,1MB");
ABSL_FLAG(
    std::string, activation_bytes, "",
    "bytes that a forward keeps for its backward besides its inputs, such as 2GiB; or one per "
    "stage");
ABSL_FLAG(std::string, weights, "",
          "bytes of a stage's weights, or one per stage; its gradients are as large");
ABSL_FLAG(int, optimizer_tensors, 2, "optimizer state, in multiples of --weights: 2 for Adam");
ABSL_FLAG(std::string, workspace, "",
          "bytes that an action of a stage needs while it runs, or one per stage");
ABSL_FLAG(std::string, bandwidth, "",
          "bytes that a link transfers per unit of time, such as 25GB; empty: no limit");
ABSL_FLAG(std::string, links, "",
          "JSON file of links that pairs of devices share (docs/cli.md); empty: a link per pair");
ABSL_FLAG(bool, overlap, true,
          "messages overlap with compute; false: a message occupies both of its devices");
ABSL_FLAG(std::string, device_speed, "",
          "speed of every device, or one per device: 1,1,0.5,1 has a straggler; empty: 1");
ABSL_FLAG(bool, atomic_pairs, false,
          "an F directly followed by a B of another micro-batch runs with it as one unit");

namespace pipelab {

SimulatedTimes TimesFromFlags() {
  SimulatedTimes times;
  times.forward = absl::GetFlag(FLAGS_forward);
  times.backward_input = absl::GetFlag(FLAGS_backward_input);
  times.backward_weight = absl::GetFlag(FLAGS_backward_weight);
  times.hop = absl::GetFlag(FLAGS_p2p_latency);
  times.recompute_time = absl::GetFlag(FLAGS_recompute_time);
  times.step = absl::GetFlag(FLAGS_step);
  times.reduce = absl::GetFlag(FLAGS_reduce);
  times.bytes = absl::GetFlag(FLAGS_bytes);
  times.memory.kept = absl::GetFlag(FLAGS_activation_bytes);
  times.memory.weights = absl::GetFlag(FLAGS_weights);
  times.memory.workspace = absl::GetFlag(FLAGS_workspace);
  times.memory.optimizer_tensors = absl::GetFlag(FLAGS_optimizer_tensors);
  times.bandwidth = absl::GetFlag(FLAGS_bandwidth);
  times.links = absl::GetFlag(FLAGS_links);
  times.overlap = absl::GetFlag(FLAGS_overlap);
  times.device_speed = absl::GetFlag(FLAGS_device_speed);
  times.atomic_pairs = absl::GetFlag(FLAGS_atomic_pairs);
  return times;
}

}  // namespace pipelab
