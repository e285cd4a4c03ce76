// A Transformer that is trained on pairs of sentences under a pipeline scheme, to translate
// sentences and to say how likely a translation is.
//
//   const Subwords subwords = Subwords::Learn(texts, 1000);           // of both languages
//   PIPELAB_ASSIGN_OR_RETURN(auto translator, Translator::Train(pairs, "fr", subwords, options));
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> said, translator->Translate(sentences));
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<double> nats, translator->CrossEntropies(candidates));
//
// Tokens are pieces of words (models/data/subwords.h). Pairs of which a side has more than
// `most_pieces` are not trained on, and cannot be translated or judged (CHECKed: Fits). The same
// pairs and options give the same bits.
//
// Errors: InvalidArgument for options that no model or scheme can have, and where no pair is short
// enough; FailedPrecondition for a loss that is not finite.
#ifndef PIPELAB_EXPERIMENTS_MINING_TRANSLATOR_H_
#define PIPELAB_EXPERIMENTS_MINING_TRANSLATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/training_state.h"
#include "models/data/catalogues.h"
#include "models/data/subwords.h"
#include "models/data/translation_batches.h"
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/fill/fill_runner.h"
#include "pipelines/runtime/training.h"

namespace pipelab {

struct TranslatorOptions {
  int64_t layers = 2, hidden = 128, heads = 4, feed_forward = 512;  // as TransformerConfig
  double dropout = 0.1;
  int64_t most_pieces = 16;
  int64_t least_count = 2;  // of a piece in the pairs, to be known
  int64_t steps = 4000;
  int64_t warmup_steps = 400;
  float learning_rate = 2e-3f;
  std::string scheme = "1f1b";
  int devices = 2, micro_batches = 4;
  int64_t micro_batch_size = 16;  // pairs
  uint64_t seed = 1;
  // Other jobs for the waits of the training, as TrainingOptions has them.
  std::function<absl::StatusOr<FillWorks>(int rank, Backend* backend)> fill_works;
  FillOptions fill;
};

// Whether both sides have at most so many pieces.
bool Fits(const TextPair& pair, const Subwords& subwords, int64_t most_pieces);

// Pairs as translation's corpora have them, of one locale.
TranslationCorpus CorpusOf(const std::vector<TextPair>& pairs, const std::string& locale);

class Translator {
 public:
  // Pairs whose cross-entropies are computed together: few, so that they fit into waits. Their last
  // bits depend on it, since a product's rows may have others in a product of fewer.
  static constexpr int64_t kScoredAtOnce = 4;

  static absl::StatusOr<std::unique_ptr<Translator>> Train(const std::vector<TextPair>& pairs,
                                                           const std::string& locale,
                                                           const Subwords& subwords,
                                                           const TranslatorOptions& options);

  double loss() const { return loss_; }  // of training, nats/place: the last tenth of the steps

  // Greedily, of the sources.
  absl::StatusOr<std::vector<std::string>> Translate(const std::vector<TextPair>& pairs) const;
  // The cross-entropy of each target, given its source: the mean over its pieces and its end, in
  // nats. `known`: those of the first pairs, as a job has left them.
  absl::StatusOr<std::vector<double>> CrossEntropies(const std::vector<TextPair>& pairs,
                                                     std::vector<double> known = {}) const;
  // The same as a job for the waits of another training, kScoredAtOnce pairs a piece. It adds to
  // `nats`, which has fewer than there are pairs, and computes on a copy of the network. The
  // backend outlives it.
  absl::StatusOr<std::unique_ptr<FillWork>> CrossEntropyJob(
      const std::vector<TextPair>& pairs, Backend* backend,
      const std::shared_ptr<std::vector<double>>& nats) const;
  TrainingState State() const { return network_->State(); }

 private:
  explicit Translator(const Subwords& subwords) : subwords_(subwords) {}
  absl::Status TrainOn(const TranslationData& data);
  TranslationCorpus Encoded(const std::vector<TextPair>& pairs) const;

  const Subwords subwords_;
  std::string locale_;
  TranslatorOptions options_;
  TranslationOptions lengths_;
  std::shared_ptr<const TranslationVocabulary> vocabulary_;
  ModelGraph graph_;
  std::unique_ptr<TranslationBatchSource> batches_;
  int64_t pairs_ = 0;
  double loss_ = 0;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<SerialTrainer> network_;  // last: it has tensors of the arena
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MINING_TRANSLATOR_H_
