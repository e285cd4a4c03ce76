#include "experiments/train/greedy_translator.h"

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
class GreedyTranslator::Rows final : public BatchSource {
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

GreedyTranslator::GreedyTranslator(std::shared_ptr<const TranslationVocabulary> vocabulary,
                                   const TranslationOptions& options, int64_t batch,
                                   Predict predict)
    : vocabulary_(std::move(vocabulary)),
      options_(options),
      batch_(static_cast<size_t>(batch)),
      predict_(std::move(predict)) {
  CHECK_GE(batch, 1);
}

int32_t GreedyTranslator::Next(const std::vector<float>& logits, size_t row, size_t place) const {
  const auto width = static_cast<size_t>(vocabulary_->size());
  const auto first =
      logits.begin() + static_cast<std::ptrdiff_t>((row * options_.target_length + place) * width);
  return static_cast<int32_t>(std::max_element(first, first + width) - first);
}

absl::StatusOr<std::vector<std::string>> GreedyTranslator::Translate(
    const TranslationCorpus& corpus) const {
  const std::vector<Translation>& all = corpus.translations;
  const auto longest = static_cast<size_t>(options_.target_length);
  std::vector<std::string> said(all.size());
  std::vector<Row> rows;
  size_t next = 0;
  while (true) {
    for (; rows.size() < batch_ && next < all.size(); ++next) {
      rows.push_back({next, SourceOf(*vocabulary_, all[next]), {}});
    }
    if (rows.empty()) return said;
    PIPELAB_ASSIGN_OR_RETURN(
        const std::vector<float> logits,
        predict_(Rows(TranslationFields(*vocabulary_, options_), rows), rows.size()));
    const size_t expected = rows.size() * longest * static_cast<size_t>(vocabulary_->size());
    if (logits.size() != expected) {
      return absl::InternalError(
          absl::StrCat(logits.size(), " logits of a prediction that has ", expected));
    }
    std::vector<Row> going_on;
    for (size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows[i];
      const int32_t token = Next(logits, i, row.said.size());
      row.said.push_back(token);
      if (token == V::kEnd || row.said.size() == longest) {
        said[row.example] = vocabulary_->Decode(row.said);
      } else {
        going_on.push_back(std::move(row));
      }
    }
    rows = std::move(going_on);
  }
}

}  // namespace pipelab
