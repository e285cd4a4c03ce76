// A GPT that trains in milliseconds a step and has a layer for each of 16 stages (8 devices, 2
// virtual stages), and text for it.
#ifndef PIPELAB_TESTS_SMALL_GPT_H_
#define PIPELAB_TESTS_SMALL_GPT_H_

#include <memory>

#include "glog/logging.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"
#include "models/zoo/gpt.h"

namespace pipelab {

inline constexpr int64_t kSmallSamples = 2;  // a micro-batch
inline constexpr int64_t kSmallTokens = 8;

inline std::unique_ptr<TextBatchSource> SmallText() {
  absl::StatusOr<TextData> data =
      MakeTextData(SyntheticCorpus(/*bytes=*/20000, /*seed=*/3), kSmallTokens, /*seed=*/5);
  CHECK(data.ok()) << data.status();
  return std::move(data->train);
}

// `words_multiple` divides the vocabulary; its last words may never come.
inline ModelGraph SmallGpt(bool tied, int64_t words_multiple = 1, double dropout = 0.1) {
  GptConfig config;
  config.layers = 7;  // 2 * 7 + 2 = 16 layers of the graph
  config.hidden = 16;
  config.heads = 2;
  config.tokens = kSmallTokens;
  const int64_t words = SmallText()->vocabulary();
  config.vocabulary = (words + words_multiple - 1) / words_multiple * words_multiple;
  config.dropout = dropout;
  config.tied_embeddings = tied;
  absl::StatusOr<ModelGraph> graph = BuildGpt(config);
  CHECK(graph.ok()) << graph.status();
  return *std::move(graph);
}

inline OptimizerOptions SmallAdam() {
  AdamOptions adam;
  adam.learning_rate = 3e-3f;
  return OptimizerOptions::Adam(adam);
}

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SMALL_GPT_H_
