#include "pipelines/runtime/held_stages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {

absl::StatusOr<Part> HeldStage::Rows(const TensorSpec& spec, Fraction fraction) const {
  Part part;
  const int64_t rows = spec.shape.empty() ? 0 : spec.shape[0];
  // The member holds [member, member + 1) / data_parallel_size of the micro-batch.
  const int64_t begin = fraction.begin * data_parallel_size - member * fraction.parts;
  const int64_t end = fraction.end * data_parallel_size - member * fraction.parts;
  if (begin == 0 && end == fraction.parts) {
    part.row_end = rows;
    return part;
  }
  part.whole = false;
  if (begin < 0 || end > fraction.parts || begin >= end) {
    return absl::InvalidArgumentError("the message's rows are not among the device's");
  }
  if (rows == 0 || begin * rows % fraction.parts != 0 || end * rows % fraction.parts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        ShapeToString(spec.shape), ", the rows of one of ", data_parallel_size,
        " group members, cannot be cut into parts of 1/", fraction.parts, " micro-batch"));
  }
  part.row_begin = begin * rows / fraction.parts;
  part.row_end = end * rows / fraction.parts;
  return part;
}

absl::StatusOr<HeldStages> HeldStages::Make(const Schedule& schedule, int device,
                                            const std::vector<std::vector<StageModule*>>& modules) {
  HeldStages held;
  held.schedule_ = &schedule;
  const auto spec = [&held](TensorSpec s) {
    held.specs_.push_back(std::make_unique<TensorSpec>(std::move(s)));
    return held.specs_.back().get();
  };
  for (int r = 0; r < schedule.placement.num_replicas(); ++r) {
    held.stages_.emplace_back(schedule.num_stages());
    for (int s = 0; s < schedule.num_stages(); ++s) {
      const std::vector<int>& group = schedule.placement.groups[r][s];
      const auto at = std::find(group.begin(), group.end(), device);
      if (at == group.end()) continue;
      HeldStage& stage = held.stages_[r][s];
      if (r < static_cast<int>(modules.size()) && s < static_cast<int>(modules[r].size())) {
        stage.module = modules[r][s];
      }
      if (stage.module == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(
            "device ", device, " holds stage ", s, " of replica ", r, " and has no module for it"));
      }
      stage.member = at - group.begin();
      stage.data_parallel_size = static_cast<int64_t>(group.size());
      stage.in_specs.resize(schedule.stages.in_edges[s].size());
      stage.out_specs.resize(schedule.stages.out_edges[s].size());
      for (int shape = 0; shape < schedule.NumShapes(); ++shape) {
        for (int e = 0; e < static_cast<int>(stage.in_specs.size()); ++e) {
          stage.in_specs[e].push_back(spec(stage.module->InputSpec(e, shape)));
        }
        for (int e = 0; e < static_cast<int>(stage.out_specs.size()); ++e) {
          stage.out_specs[e].push_back(spec(stage.module->OutputSpec(e, shape)));
        }
      }
    }
  }
  return held;
}

const TensorSpec* HeldStages::SpecAt(int micro_batch, int slice, int stage, int edge,
                                     bool in) const {
  const HeldStage& held = Of(micro_batch, stage);
  const std::vector<int>& edges =
      in ? schedule_->stages.in_edges[stage] : schedule_->stages.out_edges[stage];
  const auto at = std::find(edges.begin(), edges.end(), edge) - edges.begin();
  return (in ? held.in_specs : held.out_specs)[at][schedule_->ShapeOf(micro_batch, slice)];
}

}  // namespace pipelab
