#include "experiments/predict/gpt_run.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/specs/launched_kernels.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/block_layout.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/schedule_file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kDropout = 0.1;  // Megatron-LM's default
constexpr NumberType kType = NumberType::kFp16;

// Stages of the whole model, in one chain.
absl::StatusOr<int> StagesOf(const StepConfig& config) {
  if (!config.has_schedule_file()) {
    return NumStages(config.scheme, SchemeSizes(config), "scheme");
  }
  StepConfig sized = config;
  PIPELAB_ASSIGN_OR_RETURN(const Schedule schedule, ReadScheduleFile(&sized));
  return schedule.num_stages();
}

absl::StatusOr<GroupedModel> ModelOf(const GptRun& run, int stages) {
  if (run.layers % stages != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(stages, " stages do not divide the layers, ", run.layers));
  }
  GptConfig config;
  config.layers = run.layers;
  config.hidden = run.hidden;
  config.heads = run.heads;
  config.tokens = run.tokens;
  config.vocabulary = run.vocabulary;
  config.dropout = kDropout;
  config.tied_embeddings = true;
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(config));
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, run.config.split(), "tensor parallelism"));
  graph = MegatronGraph(std::move(graph), run.attention, kType);
  if (run.sums_beside_weights) graph = WithSumsBesideWeights(std::move(graph));
  return GroupByName(std::move(graph));
}

}  // namespace

StepConfig GptRun::MegatronConfig() {
  StepConfig config;
  config.overlap_pipeline = config.overlap_data = false;
  return config;
}

absl::StatusOr<StepPrediction> SimulateRun(const GptRun& run, const ClusterSpec& cluster) {
  StepPrediction simulated;
  PIPELAB_RETURN_IF_ERROR(
      WithSimulatedRun(run, cluster, [&](const StepModel&, const StepPrediction& p) {
        simulated = p;
        return absl::OkStatus();
      }));
  return simulated;
}

absl::Status WithSimulatedRun(
    const GptRun& run, const ClusterSpec& cluster,
    absl::FunctionRef<absl::Status(const StepModel&, const StepPrediction&)> look) {
  StepConfig c = run.config;
  if (c.devices() > cluster.max_devices()) {
    return absl::InvalidArgumentError(absl::StrCat(c.devices(), " devices; cluster ", cluster.name,
                                                   " has ", cluster.max_devices()));
  }
  PIPELAB_ASSIGN_OR_RETURN(const int stages, StagesOf(c));
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, ModelOf(run, stages));
  c.layout = EvenBlocks(run.layers, stages);
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = kType;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, PredictStep(on, c));
  return look(on, p);
}

GptRun RunOfRow(const MeasuredRow& row, int64_t vocabulary) {
  GptRun run;
  run.layers = row.layers;
  run.hidden = row.hidden;
  run.heads = row.heads;
  run.tokens = row.tokens;
  run.vocabulary = (row.vocabulary > 0 ? row.vocabulary : vocabulary) / row.tensor * row.tensor;
  StepConfig& c = run.config;
  c.scheme = !row.scheme.empty() ? row.scheme : row.virtual_stages > 1 ? "interleaved" : "1f1b";
  c.virtual_stages =
      static_cast<int>(row.scheme.empty() && row.virtual_stages == 1 ? 0 : row.virtual_stages);
  c.pipeline = static_cast<int>(row.pipeline);
  c.tensor = static_cast<int>(row.tensor);
  c.data = static_cast<int>(row.data);
  c.micro_batch_size = row.micro_batch;
  c.micro_batches = static_cast<int>(row.micro_batches());
  c.recompute = row.recompute == Recompute::kFull ? Recompute::kBlocks : row.recompute;
  run.attention = row.attention;
  c.sharding = row.sharding;
  return run;
}

Flops ModelFlops(const GptRun& run, AttentionFlops attention) {
  const double h = static_cast<double>(run.hidden), s = static_cast<double>(run.tokens);
  const double l = static_cast<double>(run.layers), v = static_cast<double>(run.vocabulary);
  const double pairs = attention == AttentionFlops::kAllPairs ? 1 : 0.5;
  return Flops(72 * static_cast<double>(run.config.batch()) * s * l * h * h *
               (1 + pairs * s / (6 * h) + v / (12 * l * h)));
}

}  // namespace pipelab
