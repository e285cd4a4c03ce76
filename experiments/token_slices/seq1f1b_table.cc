#include "experiments/token_slices/seq1f1b_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kLayers = 32, kHidden = 4096, kHeads = 32, kWords = 32768;
constexpr int kTensor = 8, kGpus = 32, kSlices = 4;
constexpr double kRatioOff = 0.1;
constexpr char kSource[] = "Seq1F1B (arXiv 2406.03488), 7B on 32 GPUs";
constexpr char kUnknown[] = "the division of 32 GPUs, recomputation and messages";

// The authors' count of a forward: of the tokens up to x, LinearWork x + SquareWork x^2, with
// embedding, head, and softmax.
constexpr double LinearWork() {
  return 24.0 * kLayers * kHidden * kHidden + 4.0 * kHidden * kWords;
}
constexpr double SquareWork() { return kLayers * (2.0 * kHidden + 1.5 * kHeads); }
double Work(double x) { return LinearWork() * x + SquareWork() * x * x; }

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

bool IsInterleaved(const std::string& scheme) {
  return scheme.find("interleaved") != std::string::npos;
}
bool IsSliced(const std::string& scheme) { return scheme.find("seq1f1b") != std::string::npos; }

StepConfig ConfigOf(const std::string& scheme, int64_t micro_batches, const Seq1F1BChoice& choice) {
  StepConfig c;
  c.scheme = scheme;
  c.pipeline = choice.pipeline;
  c.data = choice.data;
  c.tensor = kTensor;
  c.sequence_parallel = true;
  c.micro_batches = static_cast<int>(micro_batches);
  c.state.weights = 2;
  c.sharding = Sharding::kOptimizer;
  if (IsInterleaved(scheme)) c.virtual_stages = choice.virtual_stages;
  if (IsSliced(scheme)) c.slices = kSlices;
  if (choice.recompute) c.recompute = Recompute::kFull;
  if (choice.waits) {
    c.overlap_pipeline = c.steady_overlap = IsInterleaved(scheme);
  }
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

absl::StatusOr<Seq1F1BStep> SimulateScheme(const StepModel& on, int64_t tokens,
                                           const StepConfig& config) {
  StepParts parts;
  parts.model = &on;
  parts.config = config;
  parts.members = MembersOf(on, config);
  parts.micro_batch_size = parts.members;
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule,
                           MakeSchedule(config.scheme, SchemeSizes(config, parts.members)));
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           MakePartition(on.model->graph, StagesOf(parts.schedule.num_stages())));
  parts.partition = &partition;
  if (config.slices > 0) parts.slices = EqualWorkSlices(tokens, kSlices);
  parts.lowering = LoweringOf(config);
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  const double flops = 3 * Work(static_cast<double>(tokens)) * static_cast<double>(config.batch());
  return Seq1F1BStep{flops / (ToSeconds(p.step_time) * kGpus) * 1e-12, p.largest_device, p.fits};
}

// Over 1F1B where the paper has it, else over Seq1F1B.
size_t BaseOf(const PublishedSeq1F1BRow& row) { return row.tflops[0] > 0 ? 0 : 2; }

// Of the row's tokens.
bool IsOfRow(const PublishedSeq1F1BRow& row, size_t scheme) {
  return SequenceOf(row, scheme) == row.tokens;
}

std::string NameOf(const PublishedSeq1F1BRow& row, size_t scheme) {
  return absl::StrCat(kSeq1F1BSchemes[scheme], " ", row.tokens, " m=", row.micro_batches);
}

CellErrors RatioErrors(const Seq1F1BRows& rows) {
  std::vector<ComparedCell> cells;
  for (const Seq1F1BRow& row : rows.rows) {
    const size_t base = BaseOf(row.published);
    for (size_t i = base + 1; i < row.steps.size(); ++i) {
      cells.push_back({NameOf(row.published, i),
                       row.published.tflops[i] / row.published.tflops[base],
                       row.steps[i].tflops / row.steps[base].tflops});
    }
  }
  return ErrorsOf(cells);
}

struct Pairs {
  int all = 0, alike = 0;
};

// Of cells of one row; `same` leaves out those of other tokens.
Pairs OrdersOf(const Seq1F1BRows& rows, bool same) {
  Pairs pairs;
  for (const Seq1F1BRow& row : rows.rows) {
    const auto& published = row.published.tflops;
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        if (published[j] == 0 || published[i] <= published[j]) continue;
        if (same && !(IsOfRow(row.published, i) && IsOfRow(row.published, j))) continue;
        ++pairs.all;
        pairs.alike += row.steps[i].tflops > row.steps[j].tflops;
      }
    }
  }
  return pairs;
}

int CellsOf(const Seq1F1BRows& rows) { return static_cast<int>(4 * rows.rows.size()); }

// The first of those that agree with most of what was out of memory.
const Seq1F1BRows& MostAlike(const std::vector<Seq1F1BRows>& all) {
  return *std::max_element(all.begin(), all.end(), [](const Seq1F1BRows& a, const Seq1F1BRows& b) {
    return MemoryAlike(a) < MemoryAlike(b);
  });
}

Claim RangeClaim(const char* id, const char* text, const std::string& published, const char* unit) {
  Claim c = PaperClaim(id, text, kSource, "read");
  c.published = published;
  c.unit = unit;
  return c;
}

// A figure of each choice, and which of them are met.
struct OverChoices {
  double least = 0, most = 0;
  std::vector<RangeValue> values;
};
template <typename Figure, typename Met>
OverChoices Over(const std::vector<Seq1F1BRows>& all, const Figure& figure, const Met& met) {
  OverChoices over;
  over.least = over.most = figure(all[0]);
  for (const Seq1F1BRows& rows : all) {
    const double f = figure(rows);
    over.least = std::min(over.least, f);
    over.most = std::max(over.most, f);
    over.values.push_back({rows.choice.ToString(), met(f)});
  }
  return over;
}

Claim RatioClaim(const std::vector<Seq1F1BRows>& all) {
  Claim c = RangeClaim(
      "seq1f1b.ratios",
      "throughput over 1F1B, or over Seq1F1B where 1F1B is out of memory: the largest error",
      absl::StrCat(RatioErrors(all[0]).cells, " ratios"), "%");
  const OverChoices over = Over(
      all, [](const Seq1F1BRows& rows) { return RatioErrors(rows).largest; },
      [](double off) { return off <= kRatioOff; });
  const Seq1F1BRows& one = MostAlike(all);
  const CellErrors alike = RatioErrors(one);
  Found(
      &c, Origin::kSimulated, 100 * alike.largest,
      absl::StrFormat("median %.1f %%, largest %.1f %% (%s) with %s; largest %.1f to %.1f %% over "
                      "all",
                      100 * alike.median, 100 * alike.largest, alike.worst, one.choice.ToString(),
                      100 * over.least, 100 * over.most));
  MetOverRange(&c, kUnknown, over.values, "each ratio within 10 %",
               "interleaved slices gain by a smaller bubble, and lose nothing to the host, which "
               "must launch their short passes: its lead is not carried from layer to layer here");
  return c;
}

Claim OrderClaim(const std::vector<Seq1F1BRows>& all) {
  const int pairs = OrdersOf(all[0], true).all;
  Claim c = RangeClaim("seq1f1b.order", "which scheme is faster, among cells of the same tokens",
                       absl::StrCat(pairs, " pairs"), "pairs");
  const OverChoices over = Over(
      all, [](const Seq1F1BRows& rows) { return OrdersOf(rows, true).alike; },
      [&](double alike) { return alike == pairs; });
  const Seq1F1BRows& one = MostAlike(all);
  const Pairs same = OrdersOf(one, true), printed = OrdersOf(one, false);
  Found(&c, Origin::kSimulated, same.alike,
        absl::StrCat(same.alike, " with ", one.choice.ToString(), "; ", over.least, " to ",
                     over.most, " over all; as printed, a cell of other tokens with the rest, ",
                     printed.alike, " of ", printed.all));
  MetOverRange(
      &c, kUnknown, over.values, "all pairs",
      "the paper's interleaved slices are slower than plain ones, and at 32768 tokens than "
      "1F1B, where passes are shortest; here a smaller bubble gains");
  return c;
}

Claim MemoryClaim(const std::vector<Seq1F1BRows>& all) {
  Claim c = RangeClaim("seq1f1b.memory", "which runs are out of memory",
                       "1F1B and interleaved 1F1B with 131072 tokens", "runs");
  const int cells = CellsOf(all[0]);
  const OverChoices over = Over(all, MemoryAlike, [&](double alike) { return alike == cells; });
  Found(&c, Origin::kSimulated, over.most,
        absl::StrCat(over.least, " to ", over.most, " of ", cells, " over all"));
  MetOverRange(
      &c, kUnknown, over.values, "all runs",
      "1F1B with 131072 tokens fits here: our layers rebuild norms and activation functions that "
      "Megatron-LM keeps (32 bytes a token and column of a block), and its kernels are not "
      "simulated with slices");
  return c;
}

}  // namespace

std::string Seq1F1BChoice::ToString() const {
  return absl::StrCat("P=", pipeline, " D=", data, " V=", virtual_stages,
                      recompute ? " recomputed" : " kept", waits ? " waited" : " beside");
}

std::vector<Seq1F1BChoice> Seq1F1BChoices() {
  std::vector<Seq1F1BChoice> choices;
  for (const bool recompute : {false, true}) {
    for (const bool waits : {true, false}) {
      for (const int pipeline : {4, 2}) {
        for (const int chunks : {2, 4}) {
          choices.push_back({pipeline, 4 / pipeline, chunks, recompute, waits});
        }
      }
    }
  }
  return choices;
}

int64_t SequenceOf(const PublishedSeq1F1BRow& row, size_t scheme) {
  if (row.tflops[scheme] == 0) return 0;
  const double of_token = row.tflops[scheme] * 1e12 * kGpus / row.tokens_per_second[scheme] / 3;
  return std::llround((of_token - LinearWork()) / SquareWork() / 256) * 256;
}

std::vector<int64_t> EqualWorkSlices(int64_t tokens, int slices) {
  const double a = LinearWork(), b = SquareWork(),
               share = Work(static_cast<double>(tokens)) / slices;
  std::vector<int64_t> lengths;
  int64_t end = tokens;
  for (int i = 1; i < slices; ++i) {
    const double before = std::max(0.0, Work(static_cast<double>(end)) - share);
    const double begin = (std::sqrt(a * a + 4 * b * before) - a) / (2 * b);
    lengths.insert(lengths.begin(),
                   static_cast<int64_t>(static_cast<double>(end) - begin) / kTensor * kTensor);
    end -= lengths.front();
  }
  lengths.insert(lengths.begin(), end);
  return lengths;
}

absl::StatusOr<Seq1F1BRow> SimulateRow(const PublishedSeq1F1BRow& row, const Seq1F1BChoice& choice,
                                       const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, Gpt7B(row.tokens));
  const GroupedModel model = GroupByName(std::move(graph));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = NumberType::kBf16;
  Seq1F1BRow result;
  result.published = row;
  for (size_t i = 0; i < result.steps.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(
        result.steps[i],
        SimulateScheme(on, row.tokens, ConfigOf(kSeq1F1BSchemes[i], row.micro_batches, choice)));
  }
  return result;
}

int MemoryAlike(const Seq1F1BRows& rows) {
  int alike = 0;
  for (const Seq1F1BRow& row : rows.rows) {
    for (size_t i = 0; i < 4; ++i) alike += row.steps[i].fits == (row.published.tflops[i] > 0);
  }
  return alike;
}

Table Seq1F1BChoicesTable(const std::vector<Seq1F1BRows>& all) {
  Table t("choices", "What the paper does not give, and what agrees with it");
  t.AddKey("choice");
  t.AddColumn(
      {"memory_alike", "runs that fit, or not, as printed", "", "runs", Origin::kSimulated, 0});
  t.AddColumn({"orders_alike", "pairs in the printed order", "", "pairs", Origin::kSimulated, 0});
  t.AddColumn({"median", "median error of a ratio", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"largest", "largest error", "", "%", Origin::kSimulated, 1});
  for (const Seq1F1BRows& rows : all) {
    const CellErrors errors = RatioErrors(rows);
    t.AddRow({Label(rows.choice.ToString()), Simulated(MemoryAlike(rows)),
              Simulated(OrdersOf(rows, true).alike), Simulated(100 * errors.median),
              Simulated(100 * errors.largest)});
  }
  t.AddNote(
      absl::StrCat("Of ", CellsOf(all[0]), " runs and ", OrdersOf(all[0], true).all,
                   " pairs. V: stages a device where interleaved. Waited: messages run beside "
                   "compute only in an interleaved pipeline's steady phase, as in Megatron-LM; "
                   "beside: always."));
  return t;
}

Table Seq1F1BTable(const std::vector<Seq1F1BRows>& all) {
  const Seq1F1BRows& rows = MostAlike(all);
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
  t.AddColumn({"sequence", "tokens that the cell is of", "", "", Origin::kComputed, 0});
  for (const Seq1F1BRow& row : rows.rows) {
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
           Computed(step.fits ? "yes" : "no"),
           printed ? Computed(static_cast<double>(SequenceOf(p, i))) : Missing("out of memory")});
    }
  }
  t.AddNote(absl::StrCat(
      "With ", rows.choice.ToString(),
      ". 32 blocks of width 4096, T = 8 with sequence parallelism, 4 slices of equal work, bf16 "
      "and a sharded optimizer are the authors' scripts' and their counts'. Kernels and "
      "activations are ours. A cell's Tflop/s over its tokens a second is the flops of a token, "
      "which tell how long its sample was: that of Seq1F1B at 65536 tokens and 16 micro-batches "
      "was of 98304."));
  return t;
}

std::vector<Claim> Seq1F1BClaims(const std::vector<Seq1F1BRows>& all) {
  return {OrderClaim(all), RatioClaim(all), MemoryClaim(all)};
}

}  // namespace pipelab
