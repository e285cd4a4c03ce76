#include "experiments/modern/golden_rows.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/modern/flash_attention.h"
#include "experiments/modern/release_files.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/recipes/megatron_flags.h"
#include "pipelines/recipes/recipe.h"
#include "pipelines/step/step.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kGoldenTime =
    0.08;  // the bar, which was set before these rows were first predicted
constexpr char kTests[] = "megatron_lm_tests";
constexpr int64_t kMostGpus = 1 << 20;
constexpr double kGib = 1 << 30;

ClusterSpec WithRingsAlone(ClusterSpec cluster) {
  for (ClusterLevel& level : cluster.levels) {
    for (RingConnection& ring : level.rings) ring.all_reduce.reset();
  }
  return cluster;
}

// Gives the machine the attention of deterministic trainings on Blackwell. Its rate was timed as
// those of the tables were, so that a step has the same share of it. An A100's table is of
// FlashAttention-2 already.
void TakeOtherAttention(const ModelGraph& graph, ClusterSpec* cluster) {
  const std::string& gpu = cluster->device.name;
  const auto& rates = cluster->device.rates;
  if (!absl::StartsWith(gpu, "GB") || rates == nullptr) return;
  const double sustained = rates->sustained.has_value() ? rates->sustained->value : 1;
  for (const LayerSpec& layer : graph.layers) {
    if (layer.kind != kGptAttention) continue;
    const auto head_size = static_cast<int64_t>(layer.attributes.at("head_size"));
    return TakeFlashAttention2(gpu, head_size, layer.input_shapes[0][0], cluster, sustained);
  }
}

absl::StatusOr<RowStep> PredictGoldenRow(const GoldenRow& row) {
  PIPELAB_ASSIGN_OR_RETURN(const Recipe recipe, ReadMegatronFlags(row.options, row.name, row.gpus));
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, RecipeGraph(recipe));
  const GroupedModel model = GroupByName(std::move(graph));
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec cluster, LoadCluster("--cluster", row.cluster));
  const bool deterministic = recipe.kernels.filled_outputs;
  if (deterministic) TakeOtherAttention(model.graph, &cluster);
  PIPELAB_ASSIGN_OR_RETURN(RowStep s,
                           PredictRow(row.name, row.seconds, RangeOf(WithRingsAlone(cluster)),
                                      [&](const ClusterSpec& machine) {
                                        StepModel on;
                                        on.model = &model;
                                        on.cluster = &machine;
                                        on.type = recipe.type;
                                        on.optimizer_tensors = recipe.optimizer_tensors;
                                        return PredictStep(on, recipe.config);
                                      }));
  s.measured_gib = row.peak_gib;
  return s;
}

}  // namespace

absl::StatusOr<std::vector<GoldenRow>> ParseGoldenRows(absl::string_view text,
                                                       absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(
      const CsvTable table,
      CsvTable::Parse(text, what,
                      {"case", "platform", "cluster", "gpus", "step_s", "peak_bytes", "options"}));
  std::vector<GoldenRow> rows;
  int line = 1;
  for (const std::vector<std::string>& cells : table.rows()) {
    ++line;
    const auto cell = [&](const char* column) { return cells[table.Column(column)]; };
    const auto error = [&](const char* column, absl::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": line ", line, ": ", column, ": \"", cell(column), "\": ", why));
    };
    GoldenRow& row = rows.emplace_back();
    row.name = absl::StrCat(cell("case"), " ", cell("platform"));
    row.cluster = cell("cluster");
    row.options = cell("options");
    if (!absl::SimpleAtoi(cell("gpus"), &row.gpus) || row.gpus < 1 || row.gpus > kMostGpus) {
      return error("gpus", absl::StrCat("must be from 1 to ", kMostGpus));
    }
    if (!absl::SimpleAtod(cell("step_s"), &row.seconds) || !(row.seconds > 0)) {
      return error("step_s", "must be a number above 0");
    }
    double bytes = 0;
    if (!absl::SimpleAtod(cell("peak_bytes"), &bytes) || !(bytes > 0)) {
      return error("peak_bytes", "must be a number above 0");
    }
    row.peak_gib = bytes / kGib;
  }
  return rows;
}

absl::StatusOr<std::vector<GoldenRow>> ReadGoldenRows() {
  for (const EmbeddedText& file : ReleaseFiles()) {
    if (file.name == kTests) return ParseGoldenRows(file.text, absl::StrCat(file.name, ".csv"));
  }
  return absl::InternalError(absl::StrCat(kTests, ".csv is not embedded"));
}

absl::StatusOr<std::vector<RowStep>> PredictGolden(const std::vector<GoldenRow>& rows) {
  std::vector<RowStep> steps;
  for (const GoldenRow& row : rows) {
    PIPELAB_ASSIGN_OR_RETURN(RowStep s, PredictGoldenRow(row));
    steps.push_back(std::move(s));
  }
  return steps;
}

Table GoldenTable(const std::vector<RowStep>& steps) {
  return RowTable("golden", "Megatron-LM's functional tests of 7B on 8 GPUs, deterministic", steps);
}

Claim GoldenClaim(const std::vector<RowStep>& steps) {
  return MedianClaim(
      OwnClaim("golden.time", "steps of Megatron-LM's functional tests of 7B, the median error"),
      steps, kGoldenTime,
      "what attention's deterministic gradient takes longer is not priced, since nobody "
      "prints its rate for these GPUs; FlashAttention-3's takes 1.2 to 1.6 times as long on an "
      "H100");
}

}  // namespace pipelab
