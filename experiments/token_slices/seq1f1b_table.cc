#include "experiments/token_slices/seq1f1b_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/modern/flash_attention.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kLayers = 32, kHidden = 4096, kHeads = 32, kWords = 32768;
constexpr int kTensor = 8, kPipeline = 4, kGpus = 32, kSlices = 4;
// Of host and device: a call's own and its timer's two; a forward's timers' (of compute, of tokens)
// and a backward's.
constexpr int kOfCall = 3, kOfForward = 4, kOfBackward = 2;

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
  c.pipeline = kPipeline;
  c.tensor = kTensor;
  c.sequence_parallel = true;
  c.micro_batches = static_cast<int>(micro_batches);
  c.state.weights = 2;
  c.sharding = Sharding::kOptimizer;
  if (IsInterleaved(scheme)) c.virtual_stages = choice.virtual_stages;
  if (IsSliced(scheme)) c.slices = kSlices;
  c.execution = kGroupedCalls;
  c.overlap_data = false;
  return c;
}

ClusterSpec MachineOf(const Seq1F1BChoice& choice, int64_t tokens, ClusterSpec cluster) {
  TakeFlashAttention2(cluster.device.name, kHidden / kHeads, tokens, &cluster);
  cluster.device.launch_gap =
      Sourced<Nanoseconds>{Microseconds(choice.launch_gap_us) * kOfCall, "varied"};
  ClusterLevel& level = cluster.levels.back();
  if (!level.ring.has_value()) level.ring = level.connection;
  BytesPerSecond& bandwidth = level.connection.bandwidth.value;
  bandwidth = BytesPerSecond(bandwidth.value() * choice.send_share);
  return cluster;
}

// Before each pass; those of calls are the machine's launch gap.
void AddSynchronisations(const Seq1F1BChoice& choice, CostTable* costs) {
  const auto add = [&](std::vector<StageCost>* stages) {
    for (StageCost& stage : *stages) {
      stage.forward += Microseconds(choice.launch_gap_us) * kOfForward;
      stage.backward_input += Microseconds(choice.launch_gap_us) * kOfBackward;
    }
  };
  add(&costs->stages);
  for (SliceCosts& slice : costs->slices) add(&slice.stages);
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
                                           const StepConfig& config, const Seq1F1BChoice& choice) {
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
  if (!IsInterleaved(config.scheme)) parts.lowering.calls = MessageCalls::kOneMessage;
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  AddSynchronisations(choice, &step.costs);
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  const double flops = 3 * Work(static_cast<double>(tokens)) * static_cast<double>(config.batch());
  return Seq1F1BStep{flops / (ToSeconds(p.step_time) * kGpus) * 1e-12, p.largest_device, p.fits};
}

}  // namespace

std::string Seq1F1BChoice::ToString() const {
  return absl::StrCat("V=", virtual_stages, " gap=", launch_gap_us, "us sends=", send_share);
}

std::vector<Seq1F1BChoice> Seq1F1BChoices() {
  std::vector<Seq1F1BChoice> choices;
  for (const int chunks : {2, 4}) {
    for (const int64_t gap : {20, 100}) {
      for (const double share : {1.0, 0.25}) choices.push_back({chunks, gap, share});
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
  const GroupedModel model =
      GroupByName(MegatronGraph(std::move(graph), AttentionKernels::kFused, NumberType::kBf16));
  const ClusterSpec machine = MachineOf(choice, row.tokens, cluster);
  StepModel on;
  on.model = &model;
  on.cluster = &machine;
  on.type = NumberType::kBf16;
  Seq1F1BRow result;
  result.published = row;
  for (size_t i = 0; i < result.steps.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(
        result.steps[i],
        SimulateScheme(on, row.tokens, ConfigOf(kSeq1F1BSchemes[i], row.micro_batches, choice),
                       choice));
  }
  return result;
}
}  // namespace pipelab
