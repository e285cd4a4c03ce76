// Translates with a model that predicts the next character: greedily, the likeliest one each time,
// until it says kEnd or has said as many characters as fit.
//
//   GreedyTranslator translator(data.vocabulary, options, /*batch=*/128,
//       [&](const BatchSource& rows, int64_t samples) -> absl::StatusOr<std::vector<float>> {
//         std::vector<float> logits;
//         PIPELAB_RETURN_IF_ERROR(trainer->Evaluate(rows, 0, 0, samples, &logits).status());
//         return logits;
//       });
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> said, translator.Translate(*data.held_out));
//
// Every prediction takes one step for up to `batch` translations; one that has ended makes room for
// the next. What is said of a translation does not depend on the others or on `batch`.
#ifndef PIPELAB_EXPERIMENTS_TRAIN_GREEDY_TRANSLATOR_H_
#define PIPELAB_EXPERIMENTS_TRAIN_GREEDY_TRANSLATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/batch_source.h"
#include "models/data/translation_batches.h"

namespace pipelab {

class GreedyTranslator {
 public:
  // Logits [samples * target_length, vocabulary] of the samples [0, samples) of rows that have the
  // fields of TranslationFields, no targets, and kPadding behind what was said so far.
  using Predict =
      std::function<absl::StatusOr<std::vector<float>>(const BatchSource& rows, int64_t samples)>;

  // `batch` is 1 or more (checked).
  GreedyTranslator(std::shared_ptr<const TranslationVocabulary> vocabulary,
                   const TranslationOptions& options, int64_t batch, Predict predict);

  // In the order of the corpus, whose sources fit the options' length (CHECKed). Internal: a
  // prediction of another size.
  absl::StatusOr<std::vector<std::string>> Translate(const TranslationCorpus& corpus) const;

 private:
  // One translation under way.
  struct Row {
    size_t example;
    std::vector<int32_t> source, said;
  };
  class Rows;

  // The likeliest token behind what the row has said. Among equals the first.
  int32_t Next(const std::vector<float>& logits, size_t row, size_t place) const;

  const std::shared_ptr<const TranslationVocabulary> vocabulary_;
  const TranslationOptions options_;
  const size_t batch_;
  const Predict predict_;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_GREEDY_TRANSLATOR_H_
