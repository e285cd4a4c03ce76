// vocabulary_barriers of a configuration: the stages of a model whose embedding and head are
// divided by words among the devices of the pipeline (Yeung et al., MLSys 2025, arXiv 2411.05288;
// schedules/vocabulary.h), and which configurations may have them.
//
//   config.vocabulary_barriers = 2;                           // Vocab-1; 1: Vocab-2
//   PIPELAB_RETURN_IF_ERROR(CheckVocabularyParts(config));
//   StagesWithVocabulary(config).num_stages();                // 2 P + V P + 1
#ifndef PIPELAB_PIPELINES_STEP_VOCABULARY_PARTS_H_
#define PIPELAB_PIPELINES_STEP_VOCABULARY_PARTS_H_

#include "absl/status/status.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/step/step_config.h"

namespace pipelab {

// Whatever the model. InvalidArgument: a scheme without passes for parts, parts that would be
// divided again (T, C), an exchange of no parts, more stages than schedules may have.
absl::Status CheckVocabularyParts(const StepConfig& config);

// The stages of a configuration and their edges. Empty where the configuration has no parts, or
// where CheckVocabularyParts refuses it.
StageGraph StagesWithVocabulary(const StepConfig& config);

// Stages that are not the chain's: parts of the embedding, parts of the head, the loss.
inline int StagesAroundChain(int parts) { return parts == 0 ? 0 : 2 * parts + 1; }

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_VOCABULARY_PARTS_H_
