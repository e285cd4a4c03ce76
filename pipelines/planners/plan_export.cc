#include "pipelines/planners/plan_export.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/text.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kMegatron[] = "Megatron-LM's layout", kPyTorch[] = "PyTorch's schedule CSV";

template <typename... Parts>
absl::Status Error(absl::string_view form, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(form, ": ", parts...));
}

absl::string_view WordOf(absl::string_view name) { return name.substr(0, name.find('/')); }

// What a stage has of Megatron-LM's layers.
struct MegatronStage {
  bool embedding = false, loss = false;
  int transformers = 0;

  std::string Text() const {
    std::string text = embedding ? "E" : "";
    if (transformers == 1) absl::StrAppend(&text, "t");
    if (transformers > 1) absl::StrAppend(&text, "t*", transformers);
    return absl::StrCat(text, loss ? "L" : "");
  }
};

// Equal stages in a row: "(t*4|)*2".
std::string JoinStages(const std::vector<std::string>& stages) {
  std::string text;
  for (size_t begin = 0; begin < stages.size();) {
    size_t end = begin;
    while (end < stages.size() && stages[end] == stages[begin]) ++end;
    // The last stage has no bar behind it, so it is not part of a run.
    if (end == stages.size() && end - begin > 1) --end;
    const std::string bar = end == stages.size() ? "" : "|";
    if (end - begin > 1) {
      absl::StrAppend(&text, "(", stages[begin], "|)*", end - begin);
    } else {
      absl::StrAppend(&text, stages[begin], bar);
    }
    begin = end;
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> MegatronLayout(const ModelGraph& graph,
                                           const ModelPartition& partition) {
  const int last = static_cast<int>(graph.layers.size()) - 1;
  if (last < 2) return Error(kMegatron, "a model of ", last + 1, " layers");
  std::vector<MegatronStage> stages(partition.num_stages());
  for (int i = 0; i <= last; ++i) {
    const LayerSpec& layer = graph.layers[i];
    const int stage = partition.stage_of_layer[i];
    if (i > 0 && stage < partition.stage_of_layer[i - 1]) {
      return Error(kMegatron, "stage ", stage, " is not a range of layers: it has ", layer.name);
    }
    if (i == 0) {
      stages[stage].embedding = true;
      continue;
    }
    if (i == last) {
      stages[stage].loss = true;
      continue;
    }
    if (layer.name.find('/') == std::string::npos || layer.inputs != std::vector<int>{i - 1}) {
      return Error(kMegatron, "layer ", layer.name,
                   " is neither the embedding, a part of a Transformer layer nor the loss");
    }
    const LayerSpec& before = graph.layers[i - 1];
    if (WordOf(layer.name) != WordOf(before.name)) {
      ++stages[stage].transformers;
    } else if (stage != partition.stage_of_layer[i - 1]) {
      return Error(kMegatron, "stages ", stage - 1, " and ", stage, " share the Transformer layer ",
                   WordOf(layer.name));
    }
  }
  std::vector<std::string> texts;
  for (const MegatronStage& stage : stages) texts.push_back(stage.Text());
  return JoinStages(texts);
}

absl::StatusOr<std::string> PyTorchCsv(const PlanPipeline& pipeline) {
  const int64_t copies = pipeline.Copies(0);
  for (int s = 0; s < pipeline.partition.num_stages(); ++s) {
    if (pipeline.Copies(s) != copies) {
      return Error(kPyTorch, "stage ", s, " has ", pipeline.Copies(s), " copies, and stage 0 ",
                   copies);
    }
  }
  Schedule ranks = pipeline.schedule;
  ranks.order.clear();
  ranks.placement.num_devices = ranks.num_stages();
  for (int s = 0; s < ranks.num_stages(); ++s) {
    std::vector<int>& group = ranks.placement.groups[0][s];
    ranks.order.push_back(pipeline.schedule.order[group[0]]);
    group = {s};
  }
  const absl::StatusOr<std::string> csv = ToCsv(ranks);
  if (!csv.ok()) return Error(kPyTorch, csv.status().message());
  return csv;
}

}  // namespace pipelab
