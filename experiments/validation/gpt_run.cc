#include "experiments/validation/gpt_run.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/specs/megatron_kernels.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kDropout = 0.1;  // Megatron-LM's default
constexpr NumberType kType = NumberType::kFp16;

absl::StatusOr<GroupedModel> ModelOf(const GptRun& run) {
  GptConfig config;
  config.layers = run.layers;
  config.hidden = run.hidden;
  config.heads = run.heads;
  config.tokens = run.tokens;
  config.vocabulary = run.vocabulary;
  config.dropout = kDropout;
  config.tied_embeddings = true;
  GroupedModel model;
  PIPELAB_ASSIGN_OR_RETURN(model.graph, BuildGpt(config));
  PIPELAB_RETURN_IF_ERROR(
      CheckTensorParallel(model.graph, {run.tensor, /*sequence=*/false}, "tensor parallelism"));
  model.graph = WithMegatronKernels(std::move(model.graph));
  // Embedding, attention and MLP of each block, head; a group is a stage.
  const int64_t stages = run.pipeline * run.chunks, n = 2 * run.layers;
  model.group_of_layer.push_back(0);
  for (int64_t i = 0; i < n; ++i) {
    model.group_of_layer.push_back(static_cast<int>(i / 2 * stages / run.layers));
  }
  model.group_of_layer.push_back(static_cast<int>(stages - 1));
  return model;
}

absl::Status CheckRun(const GptRun& run) {
  if (run.pipeline < 1 || run.chunks < 1 || run.layers % (run.pipeline * run.chunks) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pipeline parallelism ", run.pipeline, " with ", run.chunks,
        " chunks a device does not divide the layers, ", run.layers, ", into equal stages"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StepPrediction> SimulateRun(const GptRun& run, const ClusterSpec& cluster) {
  PIPELAB_RETURN_IF_ERROR(CheckRun(run));
  if (run.tensor * run.data * run.pipeline > cluster.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(run.tensor * run.data * run.pipeline,
                                                   " devices; cluster ", cluster.name, " has ",
                                                   cluster.max_devices()));
  }
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, ModelOf(run));
  StepModel grid;
  grid.model = &model;
  grid.cluster = &cluster;
  grid.type = kType;
  StepConfig config;
  config.scheme = run.chunks > 1 ? "interleaved" : "1f1b";
  config.pipeline = static_cast<int>(run.pipeline);
  config.tensor = static_cast<int>(run.tensor);
  config.data = static_cast<int>(run.data);
  config.virtual_stages = run.chunks > 1 ? static_cast<int>(run.chunks) : 0;
  config.micro_batch_size = run.micro_batch;
  config.micro_batches = static_cast<int>(run.micro_batches);
  config.recompute = run.recompute ? Recompute::kFull : Recompute::kNone;
  config.overlap_pipeline = config.overlap_data = false;
  return PredictStep(grid, config);
}

GptRun RunOfRow(const MeasuredRow& row, int64_t vocabulary) {
  GptRun run;
  run.layers = row.layers;
  run.hidden = row.hidden;
  run.heads = row.heads;
  run.tokens = row.tokens;
  run.vocabulary = vocabulary / row.tensor * row.tensor;
  run.pipeline = row.pipeline;
  run.tensor = row.tensor;
  run.data = row.data;
  run.micro_batch = row.micro_batch;
  run.micro_batches = row.micro_batches();
  return run;
}

}  // namespace pipelab
