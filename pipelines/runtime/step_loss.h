// The loss of a step from what the stages that have it report, in this process or in several.
//
//   std::vector<LossPart> own = {{/*place=*/0, stage->losses(), stage->gradient_norm()}};
//   const StepLoss loss = SumLosses(own, loads);
//   PIPELAB_ASSIGN_OR_RETURN(const StepLoss loss, SumLossesOfProcesses(group, own, loads, limit));
//
// Summed in micro-batch order, as the serial loop does, and within one by place: the same bits
// however devices are spread.
#ifndef PIPELAB_PIPELINES_RUNTIME_STEP_LOSS_H_
#define PIPELAB_PIPELINES_RUNTIME_STEP_LOSS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/comm/process_group.h"
#include "models/layers/layer.h"

namespace pipelab {

// The part of one copy of the stage with the loss.
struct LossPart {
  int64_t place = 0;             // among the copies
  std::map<int, double> losses;  // by micro-batch
  double gradient_norm = 0;
};

// By the layer's number in the graph.
using LoadsOfLayers = std::map<int, ExpertLoads>;
void AddLoads(const LoadsOfLayers& more, LoadsOfLayers* sum);

struct StepLoss {
  double sum = 0;
  double gradient_norm = 0;  // the first copy's
  LoadsOfLayers loads;
};

StepLoss SumLosses(std::vector<LossPart> parts, LoadsOfLayers loads);
// The sum over all processes; each gets it.
absl::StatusOr<StepLoss> SumLossesOfProcesses(ProcessGroup& group, const std::vector<LossPart>& own,
                                              const LoadsOfLayers& loads, absl::Duration limit);

// The largest rows of an expert over the mean of its layer, of the layer where that is most; 0
// where there are no experts.
double LargestLoad(const LoadsOfLayers& loads);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STEP_LOSS_H_
