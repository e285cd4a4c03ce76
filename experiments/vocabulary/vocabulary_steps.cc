#include "experiments/vocabulary/vocabulary_steps.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "models/zoo/gpt.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/model_on_cluster.h"
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

// [stage] Blocks beside embedding and loss.
std::vector<int64_t> RedistributedBlocks(const VocabularySizes& s) {
  const int64_t last = s.last_blocks.value_or(LastBlocks(s)), others = s.devices - 1,
                rest = s.layers - last;
  std::vector<int64_t> blocks(others, rest / others);
  for (int64_t d = others - rest % others; d < others; ++d) ++blocks[d];
  blocks.push_back(last);
  return blocks;
}

std::string Layout(const std::vector<int64_t>& blocks) {
  std::string layout = "E";
  for (size_t d = 0; d < blocks.size(); ++d) {
    absl::StrAppend(&layout, d == 0 ? "" : "|", std::string(blocks[d], 't'));
  }
  return layout + "L";
}

const char* SchemeOf(VocabularySystem system) {
  switch (system) {
    case VocabularySystem::kBaseline:
    case VocabularySystem::kRedistributed:
      return "1f1b";
    case VocabularySystem::kVocab1:
    case VocabularySystem::kVocab2:
      return "vocab_1f1b";
    case VocabularySystem::kInterlaced:
      return "vocab_interlaced";
    case VocabularySystem::kVHalf:
      return "v_half";
    case VocabularySystem::kVHalfVocab1:
      return "vocab_v_half";
  }
  return "";
}

StepConfig ConfigOf(VocabularySystem system, const VocabularySizes& s,
                    VocabularyExchange exchange) {
  StepConfig c;
  c.pipeline = s.devices;
  c.micro_batches = s.micro_batches;
  c.state.weights = c.state.gradients = 2;
  c.scheme = SchemeOf(system);
  if (IsDivided(system)) {
    c.vocabulary_barriers = system == VocabularySystem::kVocab2 ? 1 : 2;
    c.vocabulary_exchange = exchange;
  } else if (system == VocabularySystem::kRedistributed) {
    c.layout = Layout(RedistributedBlocks(s));
  } else {
    const int stages = (system == VocabularySystem::kVHalf ? 2 : 1) * s.devices;
    c.layout = Layout(std::vector<int64_t>(stages, s.layers / stages));
  }
  return c;
}

// PTD-P, appendix (Narayanan et al., SC 2021), without recomputation.
double ModelFlops(const VocabularySizes& s) {
  const auto h = static_cast<double>(s.hidden), l = static_cast<double>(s.layers),
             t = static_cast<double>(s.tokens), v = static_cast<double>(s.vocabulary);
  return 72 * s.micro_batches * t * l * h * h * (1 + t / (6 * h) + v / (12 * l * h));
}

// Where the passes of a device are: one stage of the chain, and one part of the head.
struct DeviceStages {
  int chain = 0, output = -1;
};
DeviceStages StagesOfDevice(VocabularySystem system, int devices, int device) {
  if (!IsDivided(system)) return {device, -1};
  return {devices + device, 2 * devices + device};
}

Nanoseconds Backward(const StageCost& c) { return c.backward_input + c.backward_weight; }

VocabularyPasses PassesOfCosts(const CostTable& costs, VocabularySystem system, int devices) {
  VocabularyPasses passes;
  for (int d = 0; d < devices; ++d) {
    const DeviceStages of = StagesOfDevice(system, devices, d);
    const StageCost& chain = costs.stages[of.chain];
    passes.forward.push_back(chain.forward);
    passes.backward.push_back(Backward(chain));
    if (of.output < 0) continue;
    const StageCost& output = costs.stages[of.output];
    passes.output.push_back(output.forward + Backward(output));
    passes.input.push_back(costs.stages[d].forward + Backward(costs.stages[d]));
  }
  return passes;
}

void ScaleBackward(Nanoseconds to, Nanoseconds from, StageCost* cost) {
  cost->backward_input = Scaled(cost->backward_input, to, from);
  cost->backward_weight = Scaled(cost->backward_weight, to, from);
}

void TakePasses(const VocabularyPasses& passes, VocabularySystem system, int devices,
                CostTable* costs) {
  const VocabularyPasses ours = PassesOfCosts(*costs, system, devices);
  for (int d = 0; d < devices; ++d) {
    const DeviceStages of = StagesOfDevice(system, devices, d);
    StageCost& chain = costs->stages[of.chain];
    chain.forward = passes.forward[d];
    ScaleBackward(passes.backward[d], ours.backward[d], &chain);
    if (of.output < 0) continue;
    StageCost& output = costs->stages[of.output];
    output.forward = Scaled(output.forward, passes.output[d], ours.output[d]);
    ScaleBackward(passes.output[d], ours.output[d], &output);
  }
}

// The edges that stand for collectives.
void FreeExchange(CostTable* costs) {
  for (size_t e = 0; e < costs->edge_latency.size(); ++e) {
    EdgeLatency& latency = costs->edge_latency[e];
    if (latency.forward + latency.gradient > Nanoseconds(0)) costs->edge_bytes[e] = Bytes(0);
    latency = EdgeLatency();
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

Nanoseconds Scaled(Nanoseconds time, Nanoseconds to, Nanoseconds from) {
  return Nanoseconds(std::llround(static_cast<double>(time.value()) *
                                  (static_cast<double>(to.value()) / from.value())));
}

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
    case VocabularySystem::kVHalf:
      return "V-Half";
    case VocabularySystem::kVHalfVocab1:
      return "V-Half Vocab-1";
  }
  return "?";
}

absl::StatusOr<VocabularySystem> FindVocabularySystem(absl::string_view name) {
  for (int i = 0; i <= static_cast<int>(VocabularySystem::kVHalfVocab1); ++i) {
    const auto system = static_cast<VocabularySystem>(i);
    if (VocabularySystemName(system) == name) return system;
  }
  return absl::NotFoundError(absl::StrCat("no system \"", name, "\""));
}

bool IsDivided(VocabularySystem system) {
  return system != VocabularySystem::kBaseline && system != VocabularySystem::kRedistributed &&
         system != VocabularySystem::kVHalf;
}

VocabularySizes SizesOf(const PublishedVocabularyRun& run, int64_t tokens, int64_t vocabulary) {
  VocabularySizes sizes;
  sizes.devices = run.devices;
  sizes.layers = run.layers;
  sizes.hidden = run.hidden;
  sizes.heads = run.heads;
  sizes.tokens = tokens;
  sizes.vocabulary = vocabulary;
  return sizes;
}

// The paper counts t h (72 h + 12 t) for a block and 6 t h v for the output.
int64_t LastBlocks(const VocabularySizes& s) {
  const double output =
      6.0 * static_cast<double>(s.vocabulary) / static_cast<double>(72 * s.hidden + 12 * s.tokens);
  const double share = (static_cast<double>(s.layers) + output) / s.devices;
  return std::max<int64_t>(0, static_cast<int64_t>(std::ceil(share - output)));
}

absl::StatusOr<VocabularyStep> SimulateVocabulary(VocabularySystem system,
                                                  const VocabularySizes& sizes,
                                                  const ClusterSpec& cluster,
                                                  const VocabularyOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph gpt, Gpt(sizes));
  const auto on = ModelOnCluster::Of(MegatronGraph(std::move(gpt), AttentionImplementation::kFused,
                                                   kType, LossImplementation::kUnfused),
                                     cluster, kType);
  PIPELAB_ASSIGN_OR_RETURN(Step step,
                           BuildStep(on->step(), ConfigOf(system, sizes, options.exchange)));
  if (options.passes.has_value()) {
    TakePasses(*options.passes, system, sizes.devices, &step.costs);
  }
  if (options.free_exchange) FreeExchange(&step.costs);
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  VocabularyStep result;
  result.time = p.step_time;
  result.memory = p.largest_device;
  result.in_flight = InFlight(p.step.program.schedule, IsDivided(system) ? sizes.devices : 0);
  const double peak = kDevicePeakTflops * 1e12;
  if (system != VocabularySystem::kVHalf && system != VocabularySystem::kVHalfVocab1) {
    result.passes = PassesOfCosts(p.step.costs, system, sizes.devices);
  }
  result.mfu = ModelFlops(sizes) / (ToSeconds(p.step_time) * sizes.devices * peak);
  return result;
}

}  // namespace pipelab
