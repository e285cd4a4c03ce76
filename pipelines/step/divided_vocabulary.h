// A model whose embedding and head are divided by words among the devices of a pipeline, as a
// step's model (vocabulary_parts.h says which configurations have one).
//
//   PIPELAB_ASSIGN_OR_RETURN(const DividedVocabulary divided,
//                            DivideVocabulary(*model.model, config));
//   step_model.model = &divided.model;
//   step_model.vocabulary_parts = divided.parts();
#ifndef PIPELAB_PIPELINES_STEP_DIVIDED_VOCABULARY_H_
#define PIPELAB_PIPELINES_STEP_DIVIDED_VOCABULARY_H_

#include "absl/status/statusor.h"
#include "models/zoo/layer_groups.h"
#include "models/zoo/vocabulary_shards.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

struct DividedVocabulary {
  ShardedVocabulary vocabulary;
  GroupedModel model;  // the chain's groups are the whole model's, a part is one of its own

  int parts() const { return vocabulary.parts; }
};

// P parts. InvalidArgument naming vocabulary_barriers: a model that ShardVocabulary does not take.
absl::StatusOr<DividedVocabulary> DivideVocabulary(const GroupedModel& whole,
                                                   const StepConfig& config);

// vocabulary_exchange=collectives: what parts and the ends of the chain exchange as the paper's
// code does (sail-sg/VocabularyParallelism). It broadcasts the last hidden state in 4 bytes a
// number, and sums by all-reduces. Either takes an activation's bytes over the link of the chain's
// end twice. So each of the P - 1 messages on it has 2 / (P - 1) of these bytes, in time and
// traffic. (The gradient of the embedding is broadcast in 2 bytes, and priced like its sum.) A
// broadcast leaves one activation on each device, a sum on one.
void PriceAsCollectives(const Schedule& schedule, int parts, CostTable* costs);

// And the steps of their rings, as all collectives have them: P - 1 of a broadcast, 2 (P - 1) of an
// all-reduce. The parts' sums are two all-reduces, one after the other, and with one barrier the
// input's gradient is a third. One step and one call are a message's own.
struct CollectiveStep {
  Nanoseconds latency;  // of the ring (RankNetwork::PipelineRing)
  Nanoseconds call;     // of the library
};
void AddCollectiveLatency(const StageGraph& stages, const StepConfig& config,
                          const CollectiveStep& step, CostTable* costs);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_DIVIDED_VOCABULARY_H_
