#include "experiments/vocabulary/vocabulary_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/zoo/gpt.h"
#include "pipelines/step/megatron_graph.h"
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

StepConfig ConfigOf(VocabularySystem system, const VocabularySizes& s,
                    VocabularyExchange exchange) {
  StepConfig c;
  c.pipeline = s.devices;
  c.micro_batches = s.micro_batches;
  c.state.weights = c.state.gradients = 2;
  if (system == VocabularySystem::kBaseline) {
    // Embedding and loss beside as many blocks as there are on other devices.
    const int64_t blocks = s.layers / s.devices;
    c.layout = absl::StrCat("E(t*", blocks, "|)*", s.devices - 1, "t*", blocks, "L");
  }
  if (!IsDivided(system)) return c;
  c.scheme = system == VocabularySystem::kInterlaced ? "vocab_interlaced" : "vocab_1f1b";
  c.vocabulary_barriers = system == VocabularySystem::kVocab2 ? 1 : 2;
  c.vocabulary_exchange = exchange;
  return c;
}

// PTD-P, appendix (Narayanan et al., SC 2021), without recomputation.
double ModelFlops(const VocabularySizes& s) {
  const auto h = static_cast<double>(s.hidden), l = static_cast<double>(s.layers),
             t = static_cast<double>(s.tokens), v = static_cast<double>(s.vocabulary);
  return 72 * s.micro_batches * t * l * h * h * (1 + t / (6 * h) + v / (12 * l * h));
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
                                                  const ClusterSpec& cluster,
                                                  VocabularyExchange exchange) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph gpt, Gpt(sizes));
  const auto on = ModelOnCluster::Of(MegatronGraph(std::move(gpt), AttentionKernels::kFused, kType),
                                     cluster, kType);
  PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(on->step(), ConfigOf(system, sizes, exchange)));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  VocabularyStep result;
  result.time = p.step_time;
  result.memory = p.largest_device;
  result.in_flight = InFlight(p.step.program.schedule, IsDivided(system) ? sizes.devices : 0);
  const double peak = 312e12;
  result.mfu = ModelFlops(sizes) / (ToSeconds(p.step_time) * sizes.devices * peak);
  return result;
}

}  // namespace pipelab
