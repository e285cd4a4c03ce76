// A model under a schedule whose stages learn locally (scheme local): each stage but the last gets
// a head where the partition cuts the model (models/zoo/local_heads.h).
//
//   if (LearnsLocally(schedule)) {
//     PIPELAB_ASSIGN_OR_RETURN(absl::optional<LocalStages> local,
//                              LocalStagesOf(model, partition, LocalHead::kLinear));
//     ...   // the step's model and partition; none: the model's own
//   }
#ifndef PIPELAB_PIPELINES_STEP_LOCAL_STAGES_H_
#define PIPELAB_PIPELINES_STEP_LOCAL_STAGES_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/local_heads.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

struct LocalStages {
  GroupedModel model;  // a head is in the group of the layer it stands on
  ModelPartition partition;
};

// Whether something is learned, and of some stage's edges none brings a gradient.
bool LearnsLocally(const Schedule& schedule);

// Says what the error is of.
absl::Status LearnsLocallyError(const absl::Status& error);

// None where the partition's edges bring no gradients already: the model has heads.
// InvalidArgument: stages that are no ranges of layers, or what WithLocalHeads says.
absl::StatusOr<absl::optional<LocalStages>> LocalStagesOf(const GroupedModel& model,
                                                          const ModelPartition& partition,
                                                          LocalHead kind);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_LOCAL_STAGES_H_
