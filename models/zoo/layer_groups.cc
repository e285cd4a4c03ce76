#include "models/zoo/layer_groups.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_experts_spec.h"
#include "models/specs/gpt_latent_attention_spec.h"
#include "models/specs/gpt_mlp_spec.h"

namespace pipelab {
namespace {

bool IsSelfAttention(const LayerSpec& layer) {
  return layer.kind == kGptAttention || layer.kind == kGptLatentAttention;
}

}  // namespace

absl::StatusOr<std::vector<int>> StagesOfGroups(const GroupedModel& model,
                                                absl::Span<const int> groups_of_stage) {
  std::vector<int> stage_of_group;
  for (size_t stage = 0; stage < groups_of_stage.size(); ++stage) {
    const int groups = groups_of_stage[stage];
    // Room is checked first: a huge number must not be made.
    const int left = model.num_groups() - static_cast<int>(stage_of_group.size());
    if (groups < 1 || groups > left) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage, " of ", groups, " groups of \"", model.graph.name,
                       "\", which has ", model.num_groups(), " in all"));
    }
    stage_of_group.resize(stage_of_group.size() + groups, static_cast<int>(stage));
  }
  if (static_cast<int>(stage_of_group.size()) != model.num_groups()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stages of ", absl::StrJoin(groups_of_stage, ", "), " groups leave out some of ",
        model.num_groups(), " of \"", model.graph.name, "\""));
  }
  std::vector<int> stages;
  for (int group : model.group_of_layer) stages.push_back(stage_of_group[group]);
  return stages;
}

GroupedModel GroupForPlanning(ModelGraph graph) {
  std::vector<int> consumers(graph.layers.size(), 0);
  for (const LayerSpec& layer : graph.layers) {
    for (int input : layer.inputs) ++consumers[input];
  }
  GroupedModel model;
  const int layers = static_cast<int>(graph.layers.size());
  for (int i = 0; i < layers; ++i) {
    bool with_last = false;
    if (i > 0) {
      const LayerSpec &here = graph.layers[i], &before = graph.layers[i - 1];
      const bool chained = here.inputs == std::vector<int>{i - 1} && consumers[i - 1] == 1;
      const bool no_parameters =
          before.parameters.empty() || (i == layers - 1 && here.parameters.empty());
      const bool block =
          IsSelfAttention(before) && (here.kind == kGptMlp || here.kind == kGptExperts);
      with_last = chained && (no_parameters || block);
    }
    model.group_of_layer.push_back(model.num_groups() - (with_last ? 1 : 0));
  }
  model.graph = std::move(graph);
  return model;
}

GroupedModel GroupByName(ModelGraph graph) {
  GroupedModel model;
  model.graph = std::move(graph);
  absl::string_view last;
  for (const LayerSpec& layer : model.graph.layers) {
    const absl::string_view name = layer.name;
    const absl::string_view word = name.substr(0, name.find('/'));
    const int group = model.num_groups() - (word == last && !model.group_of_layer.empty() ? 1 : 0);
    model.group_of_layer.push_back(group);
    last = word;
  }
  return model;
}

}  // namespace pipelab
