#include "pipelines/runtime/layer_stage_checks.h"

#include "absl/strings/str_cat.h"
#include "models/graph/model_slices.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status Refuse(const Action& a, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(ToString(a), " ", why));
}

absl::Status CheckAction(const Action& a, std::initializer_list<ActionKind> kinds,
                         size_t num_slices) {
  if (a.slice < 0 || static_cast<size_t>(a.slice) >= num_slices) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(a), ": this stage was made for ",
                                                   num_slices, " token slice",
                                                   num_slices == 1 ? "" : "s", " a micro-batch"));
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
  if (o.data_parallel_size < 1 || o.member < 0 || o.member >= o.data_parallel_size) {
    return error("member ", o.member, " of a group of ", o.data_parallel_size);
  }
  if (o.micro_batch_size < 1 || o.micro_batch_size % o.data_parallel_size != 0) {
    return error("micro-batches of ", o.micro_batch_size, " samples do not divide among ",
                 o.data_parallel_size, " devices");
  }
  if (o.batch_tokens < 1) return error("batch_tokens = ", o.batch_tokens, ": must be at least 1");
  return CheckOptimizer(o.optimizer);
}

absl::StatusOr<std::vector<TokenSlice>> SlicesOf(const ModelGraph& graph,
                                                 const LayerStageOptions& options) {
  if (options.slices.size() < 2) return std::vector<TokenSlice>{TokenSlice()};
  return SlicesOfModel(graph, options.slices, graph.layers[0].rows.parts);
}

}  // namespace pipelab
