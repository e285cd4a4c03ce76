// Greedy decoding: against a plain loop over a made-up model, whatever the batch; and a Transformer
// that has learned names by heart says them.
#include "models/data/greedy_translator.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/token_fields.h"
#include "models/data/translation_baselines.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/transformer.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using V = TranslationVocabulary;

TranslationOptions Short() {
  TranslationOptions options;
  options.source_length = 20;
  options.target_length = 13;
  options.least_count = 1;
  return options;
}

TranslationData Data(int64_t names) {
  return MakeTranslationData(SyntheticTranslations(names, 1), Short());
}

std::vector<int32_t> Ids(const BatchSource& rows, const char* field, int64_t samples) {
  const int place = rows.FindField(field);
  std::vector<int32_t> ids(samples * rows.fields()[place].size());
  rows.FillIds(place, 0, 0, absl::MakeSpan(ids));
  return ids;
}

// A made-up model: what comes behind a prefix is drawn by source and prefix, one in ten times kEnd.
int32_t MadeUp(int64_t vocabulary, const std::vector<int32_t>& source,
               const std::vector<int32_t>& prefix) {
  std::string key;
  for (const int32_t token : source) absl::StrAppend(&key, token, ",");
  for (const int32_t token : prefix) absl::StrAppend(&key, "/", token);
  const CounterRng rng(1, key);
  if (rng.Below(0, 10) == 0) return V::kEnd;
  return static_cast<int32_t>(V::kFirstLocale + 3 + rng.Below(1, vocabulary - V::kFirstLocale - 3));
}

// Its logits. Checks what rows look like.
std::vector<float> MadeUpLogits(int64_t vocabulary, const BatchSource& rows, int64_t samples) {
  const int64_t s = Short().source_length, t = Short().target_length;
  const std::vector<int32_t> sources = Ids(rows, kSource, samples),
                             lengths = Ids(rows, kSourceLength, samples),
                             tokens = Ids(rows, kTokens, samples),
                             targets = Ids(rows, kTargets, samples);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), kNoData), samples * t);
  std::vector<float> logits(samples * t * vocabulary, -1);
  for (int64_t i = 0; i < samples; ++i) {
    const std::vector<int32_t> source(sources.begin() + i * s,
                                      sources.begin() + i * s + lengths[i]);
    EXPECT_EQ(source.back(), V::kEnd);
    const auto row = tokens.begin() + i * t;
    EXPECT_EQ(row[0], V::kStart);
    const auto end = std::find(row, row + t, V::kPadding);
    EXPECT_EQ(std::count(end, row + t, V::kPadding), row + t - end);
    for (int64_t r = 0; r < t; ++r) {
      const int32_t next = MadeUp(vocabulary, source, std::vector<int32_t>(row + 1, row + r + 1));
      logits[(i * t + r) * vocabulary + next] = 1;
    }
  }
  return logits;
}

TEST(GreedyTranslator, SaysWhatAPlainLoopSays) {
  const TranslationData data = Data(60);
  const int64_t v = data.vocabulary->size();
  std::vector<std::string> expected;
  std::set<size_t> lengths;
  for (const Translation& t : data.train->translations) {
    std::vector<int32_t> said;
    while (static_cast<int64_t>(said.size()) < Short().target_length) {
      said.push_back(MadeUp(v, SourceOf(*data.vocabulary, t), said));
      if (said.back() == V::kEnd) break;
    }
    lengths.insert(said.size());
    expected.push_back(data.vocabulary->Decode(said));
  }
  EXPECT_GT(lengths.size(), 8u);  // some ended at once, some were cut off
  for (const int64_t batch : {1, 2, 7, 100, 1000}) {
    int64_t largest = 0;
    const GreedyTranslator translator(data.vocabulary, Short(), batch,
                                      [&](const BatchSource& rows, int64_t samples) {
                                        largest = std::max(largest, samples);
                                        return MadeUpLogits(v, rows, samples);
                                      });
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto said, translator.Translate(*data.train));
    EXPECT_EQ(said, expected) << batch;
    EXPECT_EQ(largest, std::min<int64_t>(batch, expected.size()));
  }
}

TEST(GreedyTranslator, NothingToTranslateAndErrors) {
  const TranslationData data = Data(20);
  const auto translator = [&](const GreedyTranslator::Predict& predict) {
    return GreedyTranslator(data.vocabulary, Short(), 8, predict);
  };
  const auto fails = [](const BatchSource&, int64_t) -> absl::StatusOr<std::vector<float>> {
    return absl::DataLossError("no luck");
  };
  TranslationCorpus none = *data.train;
  none.translations.clear();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto said, translator(fails).Translate(none));
  EXPECT_TRUE(said.empty());
  EXPECT_THAT(translator(fails).Translate(*data.train),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no luck")));
  const auto short_of_logits = [](const BatchSource&, int64_t) { return std::vector<float>(3); };
  EXPECT_THAT(
      translator(short_of_logits).Translate(*data.train),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("3 logits of a prediction that has")));
}

TEST(GreedyTranslator, ATransformerSaysWhatItLearnedByHeart) {
  const TranslationData data = Data(8);
  TransformerConfig config;
  config.layers = 1;
  config.hidden = 32;
  config.heads = 2;
  config.feed_forward = 64;
  config.source_tokens = Short().source_length;
  config.target_tokens = Short().target_length;
  config.vocabulary = data.vocabulary->size();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildTransformer(config));
  const auto names = static_cast<int64_t>(data.train->translations.size());
  const TranslationBatchSource batches(data.train, data.vocabulary, Short(), ExampleOrder(names));
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  SerialOptions options;
  options.micro_batch_size = names;
  options.data = &batches;
  options.optimizer.adam.learning_rate = 5e-3f;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer, SerialTrainer::Create(graph, backend.get(), options));
  const auto predict = [&](const BatchSource& rows,
                           int64_t samples) -> absl::StatusOr<std::vector<float>> {
    std::vector<float> logits;
    PIPELAB_RETURN_IF_ERROR(trainer->Evaluate(rows, 0, 0, samples, &logits).status());
    return logits;
  };
  const GreedyTranslator translator(data.vocabulary, Short(), 5, predict);
  const auto exact = [&] {
    const auto said = translator.Translate(*data.train);
    EXPECT_THAT(said, IsOk());
    size_t at = 0;
    return Evaluate(*data.train, [&](const Translation&) { return (*said)[at++]; }).exact;
  };
  EXPECT_LT(exact(), 0.2);
  for (int i = 0; i < 200; ++i) ASSERT_THAT(trainer->Step(), IsOk());
  EXPECT_GT(exact(), 0.95);
}

}  // namespace
}  // namespace pipelab
