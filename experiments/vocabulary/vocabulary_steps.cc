#include "experiments/vocabulary/vocabulary_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/zoo/gpt.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/vocabulary_shards.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/stage_cut.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr NumberType kType = NumberType::kBf16;

absl::StatusOr<ModelGraph> Gpt(const VocabularySizes& s) {
  GptConfig c;
  c.layers = s.layers;
  c.hidden = s.hidden;
  c.heads = s.heads;
  c.tokens = s.tokens;
  c.vocabulary = s.vocabulary;
  return BuildGpt(c);
}

ModelGraph InMegatron(ModelGraph graph) {
  return MegatronGraph(std::move(graph), AttentionKernels::kFused, kType);
}

StepConfig ConfigOf(const VocabularySizes& s) {
  StepConfig c;
  c.pipeline = s.devices;
  c.micro_batches = s.micro_batches;
  c.state.weights = c.state.gradients = 2;
  return c;
}

// [layer] Its stage of a chain: blocks of `layers` as equal as can be, or by time.
absl::StatusOr<std::vector<int>> ChainOf(const StepModel& on, const VocabularySizes& s,
                                         bool by_time) {
  if (by_time) {
    const StepConfig c = ConfigOf(s);
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<StageCost> times, UnitTimes(on, c));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<int> units, CutUnits(on, c, times, s.devices));
    return StageOfLayer(UnitOfLayer(*on.model, c.cut), units);
  }
  std::vector<int> stages = {0};
  for (int64_t half = 0; half < 2 * s.layers; ++half) {
    stages.push_back(static_cast<int>(half / 2 * s.devices / s.layers));
  }
  stages.push_back(s.devices - 1);
  return stages;
}

// PTD-P, appendix (Narayanan et al., SC 2021), without recomputation.
double ModelFlops(const VocabularySizes& s) {
  const auto h = static_cast<double>(s.hidden), l = static_cast<double>(s.layers),
             t = static_cast<double>(s.tokens), v = static_cast<double>(s.vocabulary);
  return 72 * s.micro_batches * t * l * h * h * (1 + t / (6 * h) + v / (12 * l * h));
}

// Between the chain's ends and parts of the vocabulary on other devices.
void PriceAsCollectives(Bytes activation, Step* step) {
  const Schedule& s = step->program.schedule;
  const int devices = s.num_devices();
  if (devices == 1) return;
  for (size_t e = 0; e < s.stages.edges.size(); ++e) {
    const StageGraph::Edge& edge = s.stages.edges[e];
    const bool to_part = edge.to >= s.num_stages() - 1 - devices && edge.to < s.num_stages() - 1;
    const bool from_part = edge.from < devices || edge.from >= s.num_stages() - 1 - devices;
    if (!to_part && !from_part) continue;
    Bytes& bytes = step->costs.edge_bytes[e];
    bytes = Bytes(std::min(bytes, activation).value() / (devices - 1));
  }
}

int InFlight(const Schedule& s, int stage) {
  int now = 0, most = 0;
  for (const Action& a : s.order[s.placement.groups[0][stage][0]]) {
    if (a.stage != stage) continue;
    now += a.kind == ActionKind::kForward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

const char* VocabularySystemName(VocabularySystem system) {
  switch (system) {
    case VocabularySystem::kBaseline:
      return "1F1B";
    case VocabularySystem::kRedistributed:
      return "redistributed";
    case VocabularySystem::kVocab1:
      return "Vocab-1";
    case VocabularySystem::kVocab2:
      return "Vocab-2";
    case VocabularySystem::kInterlaced:
      return "interlaced";
  }
  return "?";
}

bool IsDivided(VocabularySystem system) {
  return system != VocabularySystem::kBaseline && system != VocabularySystem::kRedistributed;
}

absl::StatusOr<VocabularyStep> SimulateVocabulary(VocabularySystem system,
                                                  const VocabularySizes& sizes,
                                                  const ClusterSpec& cluster, Exchange exchange) {
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph gpt, Gpt(sizes));
  GroupedModel model = GroupByName(InMegatron(gpt));
  StepModel on;
  on.model = &model;
  on.cluster = &cluster;
  on.type = kType;
  PIPELAB_ASSIGN_OR_RETURN(
      std::vector<int> stage_of_layer,
      ChainOf(on, sizes, /*by_time=*/system == VocabularySystem::kRedistributed));
  const bool divided = IsDivided(system), in_step = system == VocabularySystem::kInterlaced;
  if (divided) {
    const int barriers = system == VocabularySystem::kVocab2 ? 1 : 2;
    PIPELAB_ASSIGN_OR_RETURN(ShardedVocabulary v, ShardVocabulary(gpt, sizes.devices, barriers));
    stage_of_layer = v.StageOfLayer(stage_of_layer);
    model = GroupByName(InMegatron(std::move(v.graph)));
  }
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                           MakePartition(model.graph, stage_of_layer));
  StepParts parts;
  parts.model = &on;
  parts.partition = &partition;
  parts.config = ConfigOf(sizes);
  SchemeParams params{sizes.devices, sizes.micro_batches};
  if (divided) params.stages = partition.stages;
  const char* scheme = in_step ? "vocab_interlaced" : divided ? "vocab_1f1b" : "1f1b";
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule, MakeSchedule(scheme, params));
  parts.lowering = LoweringOf(parts.config);
  PIPELAB_ASSIGN_OR_RETURN(Step step, AssembleStep(std::move(parts)));
  if (divided && exchange == Exchange::kCollectives) {
    PriceAsCollectives(Bytes(BytesOf(kType)) * sizes.tokens * sizes.hidden, &step);
  }
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  VocabularyStep result;
  result.time = p.step_time;
  result.memory = p.largest_device;
  result.in_flight = InFlight(p.step.program.schedule, divided ? sizes.devices : 0);
  const double peak = 312e12;
  result.mfu = ModelFlops(sizes) / (ToSeconds(p.step_time) * sizes.devices * peak);
  return result;
}

}  // namespace pipelab
