#include "tests/priced_configs.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/step/execution.h"

namespace pipelab {
namespace {

// All ways to run each scheme on several grids; every third sharding and recomputation, and some in
// sets. With experts some of them, which copies divide, and ranks too where they split rows.
// Schemes with passes for parts of the vocabulary have parts.
std::vector<StepConfig> AllConfigs(int max_stages, bool experts) {
  std::vector<StepConfig> configs;
  const std::vector<Sharding> shardings = {Sharding::kReplicated, Sharding::kOptimizer,
                                           Sharding::kGradients, Sharding::kFully};
  size_t turn = 0;
  for (const Scheme& scheme : Catalog()) {
    const bool parts = TakesVocabularyParts(scheme);
    if ((scheme.options & kStageGraph) != 0 && !parts) continue;  // needs edges of its own
    for (const auto& [p, t, d] :
         {std::tuple(2, 1, 1), {4, 1, 2}, {4, 2, 1}, {2, 2, 4}, {8, 1, 1}, {4, 2, 8}, {2, 4, 3}}) {
      for (const int m : {8, 16}) {
        StepConfig c;
        c.scheme = std::string(scheme.name);
        c.pipeline = p;
        c.tensor = t;
        c.data = d;
        c.micro_batches = m;
        VariantLimits limits;
        limits.max_stages = max_stages;
        for (const SchemeParams& params : Variants(scheme, SchemeSizes(c), limits)) {
          c.virtual_stages = params.virtual_stages;
          c.group_size = params.group_size;
          c.replicas = params.replicas;
          c.concatenation = params.concatenation;
          c.slices = params.slices;
          c.update_interval = params.update_interval;
          for (int i = 0; i < 2; ++i, ++turn) {
            const bool forward_only = (scheme.options & kForwardOnly) != 0;
            const bool whole = scheme.asynchronous || forward_only || d == 1;
            c.sharding = whole ? Sharding::kReplicated : shardings[turn % 4];
            // Else a split backward with sharded gradients is refused.
            c.split_head = (scheme.options & kSplitBackward) != 0 &&
                           (turn % 5 == 0 || ShardsGradients(c.sharding));
            const bool recompute = turn % 3 == 0 && !scheme.asynchronous && !forward_only;
            c.recompute = recompute ? Recompute::kFull : Recompute::kNone;
            c.overlap_data = turn % 5 != 0;
            c.sequence_parallel = t > 1 && turn % 7 == 0;
            c.micro_batch_size = 1 + static_cast<int64_t>(turn % 2);
            c.vocabulary_barriers = parts ? 1 + static_cast<int>(turn / 2 % 2) : 0;
            const bool once = parts && turn / 4 % 2 == 1;
            c.vocabulary_exchange =
                once ? VocabularyExchange::kCollectives : VocabularyExchange::kMessages;
            if (experts && turn / 8 % 3 != 0) continue;
            c.whole_experts = experts && c.sequence_parallel;
            c.experts = !experts ? 1 : c.whole_experts ? t * d : d;
            const bool sets = d % 4 == 0 && c.sharding != Sharding::kReplicated && turn % 2 == 1;
            c.shards = sets && !experts ? d / 2 : 0;
            configs.push_back(c);
            if (turn % 12 == 7 && c.slices == 0) {
              StepConfig& chunks = configs.emplace_back(c);
              chunks.context = 2;
              if (turn % 24 == 7) chunks.context_exchange = ContextExchange::kRing;
              if (turn % 48 == 19) chunks.context_exchange = ContextExchange::kHeads;
            }
            // Refused alike where its calls do not suit the sizes.
            if (turn % 4 != 1 || (c.scheme != "1f1b" && c.scheme != "interleaved")) continue;
            StepConfig& megatron = configs.emplace_back(c);
            megatron.execution = kAllExecutionParts;
            megatron.overlap_data = false;
          }
        }
      }
    }
  }
  return configs;
}

}  // namespace

std::vector<StepConfig> ConfigsOf(const PricedPlace& place, int max_stages) {
  std::vector<StepConfig> configs;
  size_t index = 0;
  for (StepConfig& c : AllConfigs(max_stages, std::string(place.model) == "mixtral-8x7b")) {
    // By two, since their choices alternate.
    if (index++ / 2 % 2 != static_cast<size_t>(1 - place.half)) configs.push_back(std::move(c));
  }
  return configs;
}

}  // namespace pipelab
