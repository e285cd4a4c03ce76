// GPipe's tables for AmoebaNet-D, from first principles.
#include "experiments/scaling/scaling_study.h"
#include "experiments/study/study_list.h"

namespace pipelab {

int RunAmoebanetScalingStudy(int argc, char** argv) {
  ScalingStudy study;
  study.name = "amoebanet_scaling";
  study.family = "amoebanet";
  study.title = "AmoebaNet-D over a pipeline";
  study.summary =
      "How large an AmoebaNet-D fits on 1 to 8 accelerators, and how fast it trains under GPipe "
      "and "
      "every other synchronous schedule: GPipe's Tables 1 to 3 from cluster specifications.";
  study.speed_up_layers = 18;
  study.speed_up_width = 256;
  return RunScalingStudy(argc, argv, study);
}

}  // namespace pipelab
