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
#ifndef PIPELAB_MODELS_DATA_GREEDY_TRANSLATOR_H_
#define PIPELAB_MODELS_DATA_GREEDY_TRANSLATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/data/batch_source.h"
#include "models/data/translation_batches.h"

namespace pipelab {

// Some translations on their way, a prediction at a time.
class GreedyTranslation {
 public:
  // `batch` is 1 or more, and the sources of the corpus fit the options' length (both CHECKed).
  GreedyTranslation(std::shared_ptr<const TranslationVocabulary> vocabulary,
                    const TranslationOptions& options, int64_t batch,
                    std::shared_ptr<const TranslationCorpus> corpus);
  ~GreedyTranslation();

  bool over() const { return rows_.empty(); }
  // What the next prediction is of: fields of TranslationFields, no targets, and kPadding behind
  // what was said so far.
  const BatchSource& rows() const;
  int64_t num_rows() const { return static_cast<int64_t>(rows_.size()); }
  // Its logits [num_rows() * target_length, vocabulary]. Internal: of another size.
  absl::Status Take(absl::Span<const float> logits);
  // In the order of the corpus; empty for those that have not ended.
  const std::vector<std::string>& said() const { return said_; }

 private:
  // One translation under way.
  struct Row {
    size_t example;
    std::vector<int32_t> source, said;
  };
  class Rows;

  // Others in the place of those that have ended.
  void Refill();
  // The likeliest token behind what the row has said. Among equals the first.
  int32_t Next(absl::Span<const float> logits, size_t row, size_t place) const;

  const std::shared_ptr<const TranslationVocabulary> vocabulary_;
  const TranslationOptions options_;
  const size_t batch_;
  const std::shared_ptr<const TranslationCorpus> corpus_;
  std::vector<std::string> said_;
  std::vector<Row> rows_;
  size_t next_ = 0;  // of the corpus
  const std::unique_ptr<Rows> source_;
};

class GreedyTranslator {
 public:
  // What GreedyTranslation::Take takes of these rows.
  using Predict =
      std::function<absl::StatusOr<std::vector<float>>(const BatchSource& rows, int64_t samples)>;

  // `batch` is 1 or more (CHECKed).
  GreedyTranslator(std::shared_ptr<const TranslationVocabulary> vocabulary,
                   const TranslationOptions& options, int64_t batch, Predict predict);

  // In the order of the corpus, whose sources fit the options' length (CHECKed). Internal: a
  // prediction of another size.
  absl::StatusOr<std::vector<std::string>> Translate(const TranslationCorpus& corpus) const;

 private:
  const std::shared_ptr<const TranslationVocabulary> vocabulary_;
  const TranslationOptions options_;
  const int64_t batch_;
  const Predict predict_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_GREEDY_TRANSLATOR_H_
