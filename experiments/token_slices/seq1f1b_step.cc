#include "experiments/token_slices/seq1f1b_step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "experiments/modern/flash_attention.h"
#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/megatron_graph.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// Launch gaps: a call's own and its timer's two; a forward's timers' (of compute, of tokens) and a
// backward's.
constexpr int kOfCall = 3, kOfForward = 4, kOfBackward = 2;

absl::StatusOr<ModelGraph> GptOf(const Seq1F1BSetup& setup) {
  GptConfig c;
  c.layers = setup.layers;
  c.hidden = setup.hidden;
  c.heads = setup.heads;
  c.tokens = setup.tokens;
  c.vocabulary = setup.words;
  c.positions = Positions::kNone;
  c.rotary_base = 10000;
  return BuildGpt(c);
}

StepConfig ConfigOf(const Seq1F1BSetup& setup) {
  StepConfig c;
  c.scheme = setup.scheme;
  c.pipeline = setup.pipeline;
  c.tensor = setup.tensor;
  c.data = setup.data;
  c.sequence_parallel = setup.tensor > 1;
  c.micro_batches = setup.micro_batches;
  c.state.weights = 2;
  c.sharding = Sharding::kOptimizer;
  if (setup.is_interleaved()) c.virtual_stages = setup.virtual_stages;
  if (setup.is_sliced()) c.slices = setup.slices;
  c.execution = kGroupedCalls;
  c.overlap_data = false;
  return c;
}

ClusterSpec MachineOf(const Seq1F1BSetup& setup, ClusterSpec cluster) {
  TakeFlashAttention2(cluster.device.name, setup.hidden / setup.heads, setup.tokens, &cluster);
  cluster.device.launch_gap =
      Sourced<Nanoseconds>{Microseconds(setup.launch_gap_us) * kOfCall, "varied"};
  ClusterLevel& level = cluster.levels.back();
  if (level.rings.empty()) level.rings = {{/*ranks=*/0, level.connection, {}}};
  BytesPerSecond& bandwidth = level.connection.bandwidth.value;
  bandwidth = BytesPerSecond(bandwidth.value() * setup.send_share);
  return cluster;
}

Nanoseconds Scaled(Nanoseconds time, double by) {
  return Nanoseconds(std::llround(static_cast<double>(time.value()) * by));
}

template <typename Do>
void ForEachStages(CostTable* costs, const Do& apply) {
  apply(&costs->stages);
  for (SliceCosts& slice : costs->slices) apply(&slice.stages);
}

// Before each pass; those of calls are the machine's launch gap.
void AddSynchronisations(const Seq1F1BSetup& setup, CostTable* costs) {
  ForEachStages(costs, [&](std::vector<StageCost>* stages) {
    for (StageCost& stage : *stages) {
      stage.forward += Microseconds(setup.launch_gap_us) * kOfForward;
      stage.backward_input += Microseconds(setup.launch_gap_us) * kOfBackward;
    }
  });
}

// Scales passes so that a micro-batch's, all slices together, take what was measured. What the
// timers' synchronisations take is in it.
void TakePasses(const MeasuredPasses& measured, CostTable* costs) {
  const size_t stages = costs->stages.size();
  for (size_t s = 0; s < stages; ++s) {
    double forward = 0, backward = 0;
    const auto add = [&](const StageCost& cost) {
      forward += ToMilliseconds(cost.forward);
      backward += ToMilliseconds(cost.backward_input + cost.backward_weight);
    };
    if (costs->slices.empty()) add(costs->stages[s]);
    for (const SliceCosts& slice : costs->slices) add(slice.stages[s]);
    const bool last = s + 1 == stages;
    const double f = (last ? measured.last_forward : measured.forward) / forward;
    const double b = (last ? measured.last_backward : measured.backward) / backward;
    ForEachStages(costs, [&](std::vector<StageCost>* of) {
      StageCost& cost = (*of)[s];
      cost.forward = Scaled(cost.forward, f);
      cost.backward_input = Scaled(cost.backward_input, b);
      cost.backward_weight = Scaled(cost.backward_weight, b);
    });
  }
}

// As many blocks in each stage.
std::vector<int> StagesOf(int64_t layers, int stages) {
  std::vector<int> stage_of_layer = {0};
  for (int64_t half = 0; half < 2 * layers; ++half) {
    stage_of_layer.push_back(static_cast<int>(half / 2 * stages / layers));
  }
  stage_of_layer.push_back(stages - 1);
  return stage_of_layer;
}

}  // namespace

bool Seq1F1BSetup::is_interleaved() const { return absl::StrContains(scheme, "interleaved"); }
bool Seq1F1BSetup::is_sliced() const { return absl::StrContains(scheme, "seq1f1b"); }

double Seq1F1BSetup::LinearWork() const {
  const auto width = static_cast<double>(hidden);
  return 24.0 * static_cast<double>(layers) * width * width +
         4.0 * width * static_cast<double>(words);
}
double Seq1F1BSetup::SquareWork() const {
  return static_cast<double>(layers) *
         (2.0 * static_cast<double>(hidden) + 1.5 * static_cast<double>(heads));
}

std::vector<int64_t> Seq1F1BSetup::EqualWorkSlices() const {
  const double a = LinearWork(), b = SquareWork(),
               share = Work(static_cast<double>(tokens)) / slices;
  std::vector<int64_t> lengths;
  int64_t end = tokens;
  for (int i = 1; i < slices; ++i) {
    const double before = std::max(0.0, Work(static_cast<double>(end)) - share);
    const double begin = (std::sqrt(a * a + 4 * b * before) - a) / (2 * b);
    lengths.insert(lengths.begin(),
                   static_cast<int64_t>(static_cast<double>(end) - begin) / tensor * tensor);
    end -= lengths.front();
  }
  lengths.insert(lengths.begin(), end);
  return lengths;
}

absl::StatusOr<StepPrediction> SimulateSeq1F1B(const Seq1F1BSetup& setup,
                                               const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, GptOf(setup));
  const GroupedModel model = GroupByName(
      MegatronGraph(std::move(graph), AttentionImplementation::kFused, NumberType::kBf16));
  const ClusterSpec machine = MachineOf(setup, cluster);
  StepModel on;
  on.model = &model;
  on.cluster = &machine;
  on.type = NumberType::kBf16;
  on.optimizer_tensors = setup.optimizer_tensors;
  StepParts parts;
  parts.model = &on;
  parts.config = ConfigOf(setup);
  const StepConfig& config = parts.config;
  parts.members = MembersOf(on, config);
  parts.micro_batch_size = parts.members;
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule,
                           MakeSchedule(config.scheme, SchemeSizes(config, parts.members)));
  PIPELAB_ASSIGN_OR_RETURN(
      const ModelPartition partition,
      MakePartition(model.graph, StagesOf(setup.layers, parts.schedule.num_stages())));
  parts.partition = &partition;
  if (config.slices > 0) parts.slices = setup.EqualWorkSlices();
  parts.lowering = LoweringOf(config);
  if (!setup.is_interleaved()) parts.lowering.calls = MessageCalls::kOneMessage;
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  AddSynchronisations(setup, &step.costs);
  if (setup.passes.has_value()) TakePasses(*setup.passes, &step.costs);
  return Predict(std::move(step));
}

}  // namespace pipelab
