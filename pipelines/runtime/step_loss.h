// The loss of a step from what the stages that have it report, in this process or in several.
//
//   std::vector<LossPart> own = {{/*place=*/0, stage->losses(), stage->gradient_norm()}};
//   const StepLoss loss = SumLosses(own);
//   PIPELAB_ASSIGN_OR_RETURN(const StepLoss loss, SumLossesOfProcesses(group, own, limit));
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

namespace pipelab {

// Of one copy of the stage with the loss.
struct LossPart {
  int64_t place = 0;             // among the copies
  std::map<int, double> losses;  // by micro-batch
  double gradient_norm = 0;
};

struct StepLoss {
  double sum = 0;
  double gradient_norm = 0;  // the first copy's
};

StepLoss SumLosses(std::vector<LossPart> parts);
// Of all processes; each gets it.
absl::StatusOr<StepLoss> SumLossesOfProcesses(ProcessGroup& group, const std::vector<LossPart>& own,
                                              absl::Duration limit);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STEP_LOSS_H_
