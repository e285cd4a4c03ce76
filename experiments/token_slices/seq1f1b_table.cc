#include "experiments/token_slices/seq1f1b_table.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kLayers = 32, kHidden = 4096, kHeads = 32, kWords = 51200;
constexpr int kPipeline = 4, kTensor = 8, kSlices = 4;
constexpr double kRatioOff = 0.1;
constexpr char kSource[] = "Seq1F1B (arXiv 2406.03488), 7B on 32 GPUs";

absl::StatusOr<ModelGraph> Gpt7B(int64_t tokens) {
  GptConfig c;
  c.layers = kLayers;
  c.hidden = kHidden;
  c.heads = kHeads;
  c.tokens = tokens;
  c.vocabulary = kWords;
  c.positions = Positions::kNone;
  c.rotary_base = 10000;
  return BuildGpt(c);
}

StepConfig ConfigOf(const std::string& scheme, int64_t micro_batches) {
  StepConfig c;
  c.scheme = scheme;
  c.pipeline = kPipeline;
  c.tensor = kTensor;
  c.micro_batches = static_cast<int>(micro_batches);
  c.state.weights = 2;
  if (scheme.find("seq1f1b") != std::string::npos) c.slices = kSlices;
  return c;
}

// As many blocks in each stage.
std::vector<int> StagesOf(int stages) {
  std::vector<int> stage_of_layer = {0};
  for (int64_t half = 0; half < 2 * kLayers; ++half) {
    stage_of_layer.push_back(static_cast<int>(half / 2 * stages / kLayers));
  }
  stage_of_layer.push_back(stages - 1);
  return stage_of_layer;
}

double ModelFlops(const PublishedSeq1F1BRow& row) {
  const auto t = static_cast<double>(row.tokens), h = static_cast<double>(kHidden);
  const double forward = kLayers * (24 * h * h * t + 4 * t * t * h) + 2 * t * h * kWords;
  return 3 * forward * static_cast<double>(row.micro_batches);
}

absl::StatusOr<Seq1F1BStep> SimulateScheme(const StepModel& on, const PublishedSeq1F1BRow& row,
                                           const std::string& scheme) {
  const StepConfig config = ConfigOf(scheme, row.micro_batches);
  StepParts parts;
  parts.model = &on;
  parts.config = config;
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule, MakeSchedule(scheme, SchemeSizes(config)));
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           MakePartition(on.model->graph, StagesOf(parts.schedule.num_stages())));
  parts.partition = &partition;
  if (config.slices > 0) parts.slices = EqualWorkSlices(row.tokens, kSlices, kHidden);
  parts.lowering = LoweringOf(config);
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  const double gpus = kPipeline * kTensor;
  return Seq1F1BStep{ModelFlops(row) / (ToSeconds(p.step_time) * gpus) * 1e-12, p.largest_device,
                     p.fits};
}

// Over 1F1B where the paper has it, else over Seq1F1B.
size_t BaseOf(const PublishedSeq1F1BRow& row) { return row.tflops[0] > 0 ? 0 : 2; }

std::string NameOf(const PublishedSeq1F1BRow& row, size_t scheme) {
  return absl::StrCat(kSeq1F1BSchemes[scheme], " ", row.tokens, " m=", row.micro_batches);
}

Claim RatioClaim(const std::vector<Seq1F1BRow>& rows) {
  Claim c = PaperClaim("seq1f1b.ratios",
                       "throughput over 1F1B, or over Seq1F1B where 1F1B is out "
                       "of memory",
                       kSource, "read");
  std::vector<ComparedCell> cells;
  for (const Seq1F1BRow& row : rows) {
    const size_t base = BaseOf(row.published);
    for (size_t i = base + 1; i < row.steps.size(); ++i) {
      cells.push_back({NameOf(row.published, i),
                       row.published.tflops[i] / row.published.tflops[base],
                       row.steps[i].tflops / row.steps[base].tflops});
    }
  }
  c.origin = Origin::kSimulated;
  MetWithinErrors(&c, ErrorsOf(cells), kRatioOff,
                  "an interleaved pipeline of slices has twice the messages and small passes, "
                  "whose cost on the host is not simulated; the split of 32 GPUs is assumed");
  return c;
}

Claim OrderClaim(const std::vector<Seq1F1BRow>& rows) {
  Claim c = PaperClaim("seq1f1b.order", "which scheme is faster, in each row", kSource, "read");
  c.published = "14 pairs";
  c.unit = "pairs";
  int pairs = 0, alike = 0;
  for (const Seq1F1BRow& row : rows) {
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        const auto& published = row.published.tflops;
        if (published[j] == 0 || published[i] <= published[j]) continue;
        ++pairs;
        alike += row.steps[i].tflops > row.steps[j].tflops;
      }
    }
  }
  FoundAlike(&c, Origin::kSimulated, alike, pairs,
             "the paper's interleaved slices are slower than plain ones, and Seq1F1B with 16 "
             "micro-batches than 1F1B; here a smaller bubble always gains");
  return c;
}

Claim MemoryClaim(const std::vector<Seq1F1BRow>& rows) {
  Claim c = PaperClaim("seq1f1b.memory", "which runs are out of memory", kSource, "read");
  c.published = "1F1B and interleaved 1F1B with 131072 tokens";
  c.unit = "runs";
  int runs = 0, alike = 0;
  for (const Seq1F1BRow& row : rows) {
    for (size_t i = 0; i < 4; ++i, ++runs) {
      alike += row.steps[i].fits == (row.published.tflops[i] > 0);
    }
  }
  FoundAlike(&c, Origin::kSimulated, alike, runs, "a run fits here and not there, or the reverse");
  return c;
}

}  // namespace

std::vector<int64_t> EqualWorkSlices(int64_t tokens, int slices, int64_t hidden) {
  // Products of the tokens up to x take 24 h^2 x, and attention, half of whose scores are masked, 2
  // h x^2.
  const double a = 24.0 * static_cast<double>(hidden) * static_cast<double>(hidden);
  const double b = 2.0 * static_cast<double>(hidden), n = static_cast<double>(tokens);
  std::vector<int64_t> lengths;
  int64_t begin = 0;
  for (int i = 1; i <= slices; ++i) {
    const double work = (a * n + b * n * n) * i / slices;
    const double x = (std::sqrt(a * a + 4 * b * work) - a) / (2 * b);
    const int64_t end = i == slices ? tokens : std::llround(x / 128) * 128;
    lengths.push_back(end - begin);
    begin = end;
  }
  return lengths;
}

absl::StatusOr<Seq1F1BRow> SimulateRow(const PublishedSeq1F1BRow& row, const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, Gpt7B(row.tokens));
  const GroupedModel model = GroupByName(std::move(graph));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = NumberType::kBf16;
  Seq1F1BRow result;
  result.published = row;
  for (size_t i = 0; i < result.steps.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(result.steps[i], SimulateScheme(on, row, kSeq1F1BSchemes[i]));
  }
  return result;
}

Table Seq1F1BTable(const std::vector<Seq1F1BRow>& rows) {
  Table t("rows", "Seq1F1B's table: Tflop/s a GPU of a GPT of 7B on 32 GPUs");
  t.AddKey("tokens");
  t.AddKey("micro_batches");
  t.AddKey("scheme");
  t.AddColumn({"tflops_published", "throughput", "", "Tflop/s", Origin::kPublished, 2});
  t.AddColumn({"tflops", "throughput", "", "Tflop/s", Origin::kSimulated, 1});
  t.AddColumn({"ratio_published", "over the first that fits", "", "x", Origin::kPublished, 3});
  t.AddColumn({"ratio", "over the same", "", "x", Origin::kComputed, 3});
  t.AddColumn({"memory", "peak memory", "", "GB", Origin::kSimulated, 1});
  t.AddColumn({"fits", "fits", "", "", Origin::kComputed, 0});
  for (const Seq1F1BRow& row : rows) {
    const PublishedSeq1F1BRow& p = row.published;
    const size_t base = BaseOf(p);
    for (size_t i = 0; i < row.steps.size(); ++i) {
      const Seq1F1BStep& step = row.steps[i];
      const bool printed = p.tflops[i] > 0;
      t.AddRow(
          {Label(static_cast<double>(p.tokens)), Label(static_cast<double>(p.micro_batches)),
           Label(kSeq1F1BSchemes[i]),
           printed ? Published(p.tflops[i], p.tag) : Missing("out of memory"),
           Simulated(step.tflops),
           printed ? Published(p.tflops[i] / p.tflops[base], "derived") : Missing("out of memory"),
           Computed(step.tflops / row.steps[base].tflops),
           Simulated(static_cast<double>(step.memory.value()) * 1e-9),
           Computed(step.fits ? "yes" : "no")});
    }
  }
  t.AddNote(
      "32 blocks of width 4096, 4 slices of equal work, two stages a device where interleaved, "
      "bf16 "
      "and no recomputation are the authors' scripts'. P = 4 and T = 8 are assumed. Their runs "
      "have "
      "sequence parallelism, which token slices are not simulated with: none of the rows has it, "
      "and kernels and activations are ours.");
  return t;
}

std::vector<Claim> Seq1F1BClaims(const std::vector<Seq1F1BRow>& rows) {
  return {OrderClaim(rows), RatioClaim(rows), MemoryClaim(rows)};
}

}  // namespace pipelab
