#include "experiments/vocabulary/vocabulary_steps.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

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

// [stage] Blocks beside embedding and loss, so that the longest stage has the fewest operations.
// The paper counts t h (72 h + 12 t) for a block and 6 t h v for the output.
std::vector<int64_t> BalancedBlocks(const VocabularySizes& s) {
  const double output =
      6.0 * static_cast<double>(s.vocabulary) / static_cast<double>(72 * s.hidden + 12 * s.tokens);
  const int64_t others = s.devices - 1;
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t last = 0; last <= s.layers / s.devices; ++last) {
    const int64_t most = (s.layers - last + others - 1) / others;
    const double longest = std::max(static_cast<double>(last) + output, static_cast<double>(most));
    if (longest < least) {
      least = longest;
      best = last;
    }
  }
  std::vector<int64_t> blocks;
  for (int64_t d = 0; d < others; ++d) {
    blocks.push_back((s.layers - best) * (d + 1) / others - (s.layers - best) * d / others);
  }
  blocks.push_back(best);
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
    c.layout = Layout(BalancedBlocks(s));
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
    case VocabularySystem::kVHalf:
      return "V-Half";
    case VocabularySystem::kVHalfVocab1:
      return "V-Half Vocab-1";
  }
  return "?";
}

bool IsDivided(VocabularySystem system) {
  return system != VocabularySystem::kBaseline && system != VocabularySystem::kRedistributed &&
         system != VocabularySystem::kVHalf;
}

absl::StatusOr<VocabularyStep> SimulateVocabulary(VocabularySystem system,
                                                  const VocabularySizes& sizes,
                                                  const ClusterSpec& cluster,
                                                  VocabularyExchange exchange) {
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph gpt, Gpt(sizes));
  const auto on = ModelOnCluster::Of(
      MegatronGraph(std::move(gpt), AttentionKernels::kFused, kType, LossKernels::kUnfused),
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
