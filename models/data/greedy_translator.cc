#include "models/data/greedy_translator.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "glog/logging.h"
#include "models/data/token_fields.h"
#include "tools/base/status_macros.h"

namespace pipelab {

using V = TranslationVocabulary;

// What the rows have said so far, as a batch.
class GreedyTranslation::Rows final : public BatchSource {
 public:
  Rows(std::vector<DataField> fields, const std::vector<Row>& rows)
      : BatchSource(std::move(fields)), rows_(rows) {}

  void FillIds(int field, int64_t, int64_t first_sample, absl::Span<int32_t> out) const override {
    const absl::string_view name = fields()[field].name;
    const auto size = static_cast<size_t>(fields()[field].size());
    const int64_t samples = SamplesIn(field, out.size());
    for (int64_t i = 0; i < samples; ++i) {
      Fill(name, rows_.at(first_sample + i), out.subspan(i * size, size));
    }
  }

 private:
  static void Fill(absl::string_view name, const Row& row, absl::Span<int32_t> out) {
    std::fill(out.begin(), out.end(), name == kTargets ? kNoData : V::kPadding);
    if (name == kSource) {
      CHECK_LE(row.source.size(), out.size());
      std::copy(row.source.begin(), row.source.end(), out.begin());
    } else if (name == kSourceLength) {
      out[0] = static_cast<int32_t>(row.source.size());
    } else if (name == kTokens) {
      out[0] = V::kStart;
      std::copy(row.said.begin(), row.said.end(), out.begin() + 1);
    }
  }

  const std::vector<Row>& rows_;
};

GreedyTranslation::GreedyTranslation(std::shared_ptr<const TranslationVocabulary> vocabulary,
                                     const TranslationOptions& options, int64_t batch,
                                     std::shared_ptr<const TranslationCorpus> corpus)
    : vocabulary_(std::move(vocabulary)),
      options_(options),
      batch_(static_cast<size_t>(batch)),
      corpus_(std::move(corpus)),
      said_(corpus_->translations.size()),
      source_(std::make_unique<Rows>(TranslationFields(*vocabulary_, options_), rows_)) {
  CHECK_GE(batch, 1);
  Refill();
}

GreedyTranslation::~GreedyTranslation() = default;

const BatchSource& GreedyTranslation::rows() const { return *source_; }

void GreedyTranslation::Refill() {
  const std::vector<Translation>& all = corpus_->translations;
  for (; rows_.size() < batch_ && next_ < all.size(); ++next_) {
    rows_.push_back({next_, SourceOf(*vocabulary_, all[next_]), {}});
  }
}

int32_t GreedyTranslation::Next(absl::Span<const float> logits, size_t row, size_t place) const {
  const auto width = static_cast<size_t>(vocabulary_->size());
  const auto first =
      logits.begin() + static_cast<std::ptrdiff_t>((row * options_.target_length + place) * width);
  return static_cast<int32_t>(std::max_element(first, first + width) - first);
}

absl::Status GreedyTranslation::Take(absl::Span<const float> logits) {
  const auto longest = static_cast<size_t>(options_.target_length);
  const size_t expected = rows_.size() * longest * static_cast<size_t>(vocabulary_->size());
  if (logits.size() != expected) {
    return absl::InternalError(
        absl::StrCat(logits.size(), " logits of a prediction that has ", expected));
  }
  std::vector<Row> going_on;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const int32_t token = Next(logits, i, row.said.size());
    row.said.push_back(token);
    if (token == V::kEnd || row.said.size() == longest) {
      said_[row.example] = vocabulary_->Decode(row.said);
    } else {
      going_on.push_back(std::move(row));
    }
  }
  rows_ = std::move(going_on);
  Refill();
  return absl::OkStatus();
}

GreedyTranslator::GreedyTranslator(std::shared_ptr<const TranslationVocabulary> vocabulary,
                                   const TranslationOptions& options, int64_t batch,
                                   Predict predict)
    : vocabulary_(std::move(vocabulary)),
      options_(options),
      batch_(batch),
      predict_(std::move(predict)) {
  CHECK_GE(batch, 1);
}

absl::StatusOr<std::vector<std::string>> GreedyTranslator::Translate(
    const TranslationCorpus& corpus) const {
  // The corpus is there until the end.
  const std::shared_ptr<const TranslationCorpus> all(std::shared_ptr<void>(), &corpus);
  GreedyTranslation translation(vocabulary_, options_, batch_, all);
  while (!translation.over()) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> logits,
                             predict_(translation.rows(), translation.num_rows()));
    PIPELAB_RETURN_IF_ERROR(translation.Take(logits));
  }
  return translation.said();
}

}  // namespace pipelab
