#include "pipelines/runtime/layer_stage_checks.h"

#include "absl/strings/str_cat.h"

namespace pipelab {

absl::Status Refuse(const Action& a, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(ToString(a), " ", why));
}

absl::Status CheckAction(const Action& a, std::initializer_list<ActionKind> kinds) {
  if (a.slice != 0) {
    return absl::UnimplementedError(
        absl::StrCat(ToString(a), ": stages of layers take whole samples (num_slices = 1)"));
  }
  for (ActionKind kind : kinds) {
    if (a.kind == kind) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(ToString(a), " came to a call for another kind"));
}

absl::Status CheckStageSizes(const ModelPartition& partition, int stage,
                             const LayerStageOptions& o) {
  const auto error = [](auto... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };
  if (stage < 0 || stage >= partition.num_stages()) {
    return error("stage ", stage, " of a partition into ", partition.num_stages());
  }
  if (o.num_slices != 1) {
    return absl::UnimplementedError(absl::StrCat(
        "num_slices = ", o.num_slices, ": stages of layers take whole samples (num_slices = 1)"));
  }
  if (o.group_size < 1 || o.member < 0 || o.member >= o.group_size) {
    return error("member ", o.member, " of a group of ", o.group_size);
  }
  if (o.micro_batch_samples < 1 || o.micro_batch_samples % o.group_size != 0) {
    return error("micro-batches of ", o.micro_batch_samples, " samples do not divide among ",
                 o.group_size, " devices");
  }
  if (o.batch_tokens < 1) return error("batch_tokens = ", o.batch_tokens, ": must be at least 1");
  return absl::OkStatus();
}

}  // namespace pipelab
