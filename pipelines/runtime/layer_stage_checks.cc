#include "pipelines/runtime/layer_stage_checks.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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

absl::Status CheckStageSizes(const ModelGraph& graph, int begin, int end,
                             const LayerStageOptions& o) {
  const int layers = static_cast<int>(graph.layers.size());
  const auto error = [](auto... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };
  if (begin < 0 || end > layers || begin >= end) {
    return error("a stage of the layers [", begin, ", ", end, ") of ", layers);
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

absl::Status CheckStageChain(const ModelGraph& graph, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const LayerSpec& layer = graph.layers[i];
    const std::vector<int> expected = i == 0 ? std::vector<int>{} : std::vector<int>{i - 1};
    if (layer.inputs != expected) {
      return absl::UnimplementedError(absl::StrCat("layer \"", layer.name, "\" (number ", i,
                                                   ") takes [", absl::StrJoin(layer.inputs, ", "),
                                                   "]: stages of layers take chains"));
    }
    const bool last = i + 1 == static_cast<int>(graph.layers.size());
    if (layer.output_shape.empty() != last) {
      return absl::InvalidArgumentError(absl::StrCat(
          "layer \"", layer.name, "\": the last layer of a chain, and no other, is a loss"));
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
