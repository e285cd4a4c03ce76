#include "absl/flags/flag.h"
#include "experiments/commands/paper_run.h"

ABSL_FLAG(std::string, forward, "1", "time of a forward, in any unit; or one a stage: 1,2,1");
ABSL_FLAG(std::string, backward_input, "1",
          "time of the input part of a backward; a fused backward costs both parts");
ABSL_FLAG(std::string, backward_weight, "1", "time of the weight part of a backward");
ABSL_FLAG(std::string, hop, "0", "time of a message between two devices");
ABSL_FLAG(bool, atomic_pairs, false,
          "an F directly followed by a B of another micro-batch runs with it as one unit");

namespace pipelab {

PaperTimes TimesFromFlags() {
  PaperTimes times;
  times.forward = absl::GetFlag(FLAGS_forward);
  times.backward_input = absl::GetFlag(FLAGS_backward_input);
  times.backward_weight = absl::GetFlag(FLAGS_backward_weight);
  times.hop = absl::GetFlag(FLAGS_hop);
  times.atomic_pairs = absl::GetFlag(FLAGS_atomic_pairs);
  return times;
}

}  // namespace pipelab
