// Formulas of GPTs: parameters, flops, bytes.
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "experiments/formulas/published_formulas.h"
#include "experiments/published/megatron.h"
#include "models/graph/layer_spec.h"
#include "models/specs/unfused_attention_spec.h"
#include "models/zoo/gpt.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

GptConfig ConfigOf(const PublishedMegatronRow& row, const MegatronPaper& paper) {
  GptConfig c;
  c.layers = row.layers;
  c.hidden = row.hidden;
  c.heads = row.heads;
  c.tokens = paper.tokens;
  c.vocabulary = paper.vocabulary;
  c.tied_embeddings = true;
  return c;
}

FormulaGroup ModelGroup(const char* id, const char* text, const char* source, double limit,
                        const char* reason, const char* unit) {
  FormulaGroup g;
  g.id = absl::StrCat("formulas.", id);
  g.text = text;
  g.source = source;
  g.tag = "read";
  g.unit = unit;
  g.limit = limit;
  g.reason = reason;
  return g;
}

// Products of all layers, of so many samples.
struct ModelFlops {
  double forward = 0, input = 0, weight = 0;
};

// Layers whose name begins so; all: "".
ModelFlops FlopsOf(const ModelGraph& graph, int64_t samples, absl::string_view prefix) {
  ModelFlops sum;
  for (const LayerSpec& layer : graph.layers) {
    if (!absl::StartsWith(layer.name, prefix)) continue;
    const LayerCosts costs = CostsOf(layer, samples, TokenSlice());
    sum.forward += costs.forward.value();
    sum.input += costs.backward_input.value();
    sum.weight += costs.backward_weight.value();
  }
  return sum;
}

void AddMegatronRow(const MegatronPaper& paper, const PublishedMegatronRow& row,
                    const ModelGraph& graph, const ModelGraph& unfused, FormulaGroup* parameters,
                    FormulaGroup* flops) {
  const double l = double(row.layers), h = double(row.hidden), v = double(paper.vocabulary),
               s = double(paper.tokens);
  FormulaCell cell;
  cell.scheme = absl::StrCat(row.parameters * 1e-9, "B");
  cell.sizes = absl::StrCat("l=", row.layers, " h=", row.hidden);
  cell.low = cell.high = 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)) * 1e-9;
  cell.ours = double(graph.num_parameters()) * 1e-9;
  parameters->cells.push_back(cell);
  // The layers' forward is there twice, for recomputation; the head's is not.
  cell.low = cell.high = paper.FlopsOf(row).value() * 1e-15;
  const ModelFlops ours = FlopsOf(unfused, row.batch, "");
  const double recomputed = FlopsOf(unfused, row.batch, "block").forward;
  cell.ours = (ours.forward + recomputed + ours.input + ours.weight) * 1e-15;
  flops->cells.push_back(cell);
}

// F sbh(24h+4s), B sbh(24h+8s), W sbh(24h).
void AddZeroBubbleRow(const PublishedMegatronRow& row, const MegatronPaper& paper,
                      const ModelGraph& graph, FormulaGroup* group) {
  const double h = double(row.hidden), s = double(paper.tokens);
  const ModelFlops block = FlopsOf(graph, 1, "block0/");
  const struct {
    const char* pass;
    double published, ours;
  } passes[] = {{"F", s * h * (24 * h + 4 * s), block.forward},
                {"B", s * h * (24 * h + 8 * s), block.input},
                {"W", s * h * 24 * h, block.weight}};
  for (const auto& pass : passes) {
    FormulaCell cell;
    cell.scheme = pass.pass;
    cell.sizes = absl::StrCat("h=", row.hidden);
    cell.low = cell.high = pass.published * 1e-12;
    cell.ours = pass.ours * 1e-12;
    group->cells.push_back(cell);
  }
}

// What each device sends for an all-reduce of so many numbers is 2 (t - 1) / t of them.
double SentNumbers(const std::vector<TensorCollective>& collectives, double t) {
  double numbers = 0;
  for (const TensorCollective& c : collectives) {
    const double times = c.kind == Collective::kAllReduce ? 2 : 1;
    numbers += times * (t - 1) / t * static_cast<double>(c.bytes.value()) / sizeof(float);
  }
  return numbers;
}

// b s h numbers a message, 8 b s h (t - 1) / t numbers of a layer and device within a
// tensor-parallel group.
absl::Status AddTraffic(const PublishedMegatronRow& row, const MegatronPaper& paper,
                        const ModelGraph& graph, FormulaGroup* messages, FormulaGroup* tensor) {
  TensorParallel split;
  split.degree = static_cast<int>(row.tensor);
  PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, split));
  const double t = static_cast<double>(row.tensor);
  const double bsh = static_cast<double>(row.micro_batch * paper.tokens * row.hidden);
  double sent = 0, message = 0;
  for (const LayerSpec& layer : graph.layers) {
    if (!absl::StartsWith(layer.name, "block0/")) continue;
    const TensorShare share = ShareOf(layer, row.micro_batch, TokenSlice(), split);
    for (const auto* pass : {&share.forward, &share.backward_input, &share.backward_weight}) {
      sent += SentNumbers(*pass, t);
    }
    message = static_cast<double>(CostsOf(layer, row.micro_batch, TokenSlice()).output.value()) /
              sizeof(float);
  }
  FormulaCell cell;
  cell.scheme = absl::StrCat("t=", row.tensor);
  cell.sizes = absl::StrCat("h=", row.hidden, " b=", row.micro_batch);
  cell.low = cell.high = bsh * 1e-6;
  cell.ours = message * 1e-6;
  messages->cells.push_back(cell);
  cell.low = cell.high = 8 * bsh * (t - 1) / t * 1e-6;
  cell.ours = sent * 1e-6;
  tensor->cells.push_back(cell);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<FormulaGroup>> ModelFormulas() {
  PIPELAB_ASSIGN_OR_RETURN(const MegatronPaper paper, PublishedMegatron());
  FormulaGroup parameters = ModelGroup(
      "megatron_parameters", "parameters 12 l h^2 (1 + 13/(12h) + (V+s)/(12 l h))",
      "Megatron-LM (arXiv 2104.04473)", 1e-4,
      "the graph has the last norm and other small vectors, which the formula leaves out", "10^9");
  FormulaGroup flops = ModelGroup(
      "megatron_flops", "flops of an iteration 96 B s l h^2 (1 + s/(6h) + V/(16 l h))",
      "Megatron-LM (arXiv 2104.04473)", 0.01, "the graph's layers compute other products", "10^15");
  FormulaGroup layer = ModelGroup(
      "zero_bubble_flops", "flops of a layer: F sbh(24h+4s), B sbh(24h+8s), W sbh(24h)",
      "Zero bubble (arXiv 2401.10241)", 1e-9, "the graph's layers compute other products", "10^12");
  FormulaGroup messages =
      ModelGroup("megatron_messages", "numbers of a message between stages: b s h",
                 "Megatron-LM (arXiv 2104.04473)", 1e-9, "blocks hand on something else", "10^6");
  FormulaGroup tensor = ModelGroup(
      "megatron_tensor", "numbers a device sends for a layer in its group: 8 b s h (t - 1)/t",
      "Megatron-LM (arXiv 2104.04473)", 1e-9, "blocks sum something else", "10^6");
  for (const PublishedMegatronRow& row : paper.rows) {
    PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGpt(ConfigOf(row, paper)));
    // Both systems computed attention without fused kernels, which makes all pairs of tokens: they
    // keep 5 a s^2 bytes of scores (zero bubble's in the source of bubble_rates_list.cc).
    const ModelGraph unfused = WithUnfusedAttention(graph);
    AddMegatronRow(paper, row, graph, unfused, &parameters, &flops);
    AddZeroBubbleRow(row, paper, unfused, &layer);
    PIPELAB_RETURN_IF_ERROR(AddTraffic(row, paper, graph, &messages, &tensor));
  }
  return std::vector<FormulaGroup>{std::move(parameters), std::move(flops), std::move(messages),
                                   std::move(tensor), std::move(layer)};
}

}  // namespace pipelab
