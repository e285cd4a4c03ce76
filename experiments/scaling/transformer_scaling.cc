// GPipe's tables for the Transformer, from first principles.
#include "experiments/scaling/scaling_study.h"
#include "experiments/study/study_list.h"

namespace pipelab {

int RunTransformerScalingStudy(int argc, char** argv) {
  ScalingStudy study;
  study.name = "transformer_scaling";
  study.family = "transformer";
  study.title = "A Transformer over a pipeline";
  study.summary =
      "How deep a Transformer fits on 1 to 128 accelerators, and how fast it trains under GPipe "
      "and "
      "every other synchronous schedule: GPipe's Tables 1 to 3 from cluster specifications.";
  study.speed_up_layers = 1663;
  study.speed_up_width = 2048;
  return RunScalingStudy(argc, argv, study);
}

}  // namespace pipelab
