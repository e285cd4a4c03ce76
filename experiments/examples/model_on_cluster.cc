// Which schedule for my model on my cluster: a step under each synchronous scheme, predicted.
//
//   tools/bazel run //experiments/examples:model_on_cluster
#include "pipelines/step/model_on_cluster.h"

#include <cstdio>
#include <string>

#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status Run() {
  PIPELAB_ASSIGN_OR_RETURN(const auto on, ModelOnCluster::Load("gpt-6.6b", "dgx-a100", "bf16"));
  for (const Scheme& scheme : Catalog()) {
    PIPELAB_ASSIGN_OR_RETURN(const StepConfig config,
                             ParseStepConfig("", std::string(scheme.name) + ":P=8,M=32"));
    const absl::StatusOr<StepPrediction> p = PredictStep(on->step(), config);
    if (!TrainsAsSerial(scheme) || !p.ok()) continue;  // not every scheme serves every size
    if (TakesVocabularyParts(scheme)) continue;        // the model has none
    std::printf("%-19s %9s  bubble %5.1f %%  %s%s\n", config.scheme.c_str(),
                ToString(p->step_time).c_str(), 100 * p->bubble,
                ToString(p->largest_device).c_str(), p->fits ? "" : ", too much for a device");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
