#include "models/data/summaries.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/data/metrics.h"
#include "models/data/ngram.h"
#include "models/data/text_batches.h"
#include "models/data/translation_baselines.h"
#include "models/data/translation_batches.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

namespace pipelab {
namespace {

constexpr uint64_t kSeed = 1;

std::string Percent(double share) { return absl::StrFormat("%.1f", 100 * share); }

}  // namespace

absl::StatusOr<std::string> Summary(const TextCorpus& corpus) {
  PIPELAB_ASSIGN_OR_RETURN(const TextData data, MakeTextData(corpus, /*context=*/128, kSeed));
  std::vector<std::vector<std::string>> texts = {{"document", "lines", "size"}, {"", "", "bytes"}};
  for (size_t i = 0; i < corpus.documents.size(); ++i) {
    TextCorpus one;
    one.documents = {corpus.documents[i]};
    texts.push_back({corpus.titles[i], absl::StrCat(one.lines()), absl::StrCat(one.bytes())});
  }
  texts.push_back({"all", absl::StrCat(corpus.lines()), absl::StrCat(corpus.bytes())});
  std::vector<std::vector<std::string>> losses = {
      {"context", "held-out loss"},
      {"bytes", "nats/byte"},
      {"none, all bytes alike",
       absl::StrFormat("%.3f", std::log(static_cast<double>(data.vocabulary.size())))}};
  for (const int order : {1, 2, 3, 5}) {
    const NGramModel model(data.train->tokens(), data.vocabulary.size(), order);
    losses.push_back(
        {absl::StrCat(order - 1), absl::StrFormat("%.3f", model.Loss(data.held_out->tokens()))});
  }
  return absl::StrCat(
      corpus.name, ": ", data.vocabulary.size(), " different bytes; ", data.train->tokens().size(),
      " for training, ", data.held_out->tokens().size(), " held out\n",
      AlignColumns(texts, 2, {false, true, true}), AlignColumns(losses, 2, {false, true}));
}

std::string Summary(const ImageData& data) {
  return absl::StrFormat(
      "%s: %d images for training, %d held out, %d x %d x %d, %d classes; pixels of mean %.4f, "
      "deviation %.4f\n  nearest class mean: held-out accuracy %.4f\n",
      data.name, data.train->size(), data.held_out->size(), data.train->height, data.train->width,
      data.train->channels, data.train->classes, data.scale.mean, data.scale.deviation,
      NearestMeanAccuracy(*data.train, *data.held_out));
}

std::string Summary(const FrameStream& frames) {
  return absl::StrFormat(
      "camera frames: %d of %d x %d\n  each taken for the next one: mean squared error %.6f\n",
      frames.size(), frames.width, frames.height, CopyError(frames));
}

std::string Summary(const TextGraph& graph) {
  const GraphData data = ToGraphData(graph, 1);
  return absl::StrFormat(
      "%s: %d vertices, %d edges, %d classes, %d words\n"
      "  accuracy held out: largest class %.1f %%, neighbours %.1f %%, naive Bayes %.1f %%\n",
      graph.name, graph.graph.num_vertices(), graph.graph.num_edges(), graph.classes.size(),
      graph.words.size(), 100 * LargestClassAccuracy(data), 100 * NeighbourAccuracy(data),
      100 * NaiveBayesAccuracy(graph, data));
}

std::string Summary(const ParallelText& text) {
  return absl::StrFormat(
      "manuals, English and German: %d aligned blocks; without a partner %d English and %d German "
      "sentences\n",
      text.pairs.size(), text.lone_sources.size(), text.lone_targets.size());
}

std::string Summary(const TranslationCorpus& corpus) {
  const TranslationOptions options;
  const TranslationSplit split = SplitTranslations(corpus);
  const TranslationData data = MakeTranslationData(corpus, options);
  const DictionaryTranslator dictionary(split.train);
  const TranslationQuality copy =
      Evaluate(*data.held_out, [](const Translation& t) { return t.source; });
  const TranslationQuality looked_up = Evaluate(*data.held_out, [&](const Translation& t) {
    return dictionary.Translate(t.locale, t.source);
  });
  const std::vector<std::vector<std::string>> table = {
      {"baseline", "exact", "chrF"},
      {"", "%", "%"},
      {"copying", Percent(copy.exact), Percent(copy.chrf)},
      {"dictionary", Percent(looked_up.exact), Percent(looked_up.chrf)}};
  return absl::StrFormat(
      "%s: %d translations in %d locales, %d for training, %d held out; %d longer than %d and %d "
      "tokens; a vocabulary of %d\n%s",
      corpus.name, corpus.translations.size(), corpus.locales.size(),
      split.train.translations.size(), split.held_out.translations.size(), data.too_long,
      options.source_length, options.target_length, data.vocabulary->size(),
      AlignColumns(table, 2, {false, true, true}));
}

std::string Summary(const RatingTable& table) {
  const RatingSplit split = SplitRatings(table, kSeed);
  int64_t liked = 0;
  for (const Rating& r : table.ratings) liked += r.liked();
  return absl::StrFormat(
      "%s: %d ratings of %d films in %d genres by %d users, %.1f %% of them %g stars or more; %d "
      "for training, %d held out\n  user and item bias: held-out AUC %.4f\n",
      table.name, table.ratings.size(), table.films.size(), table.genres.size(), table.users,
      100.0 * static_cast<double>(liked) / static_cast<double>(table.ratings.size()), kLikedStars,
      split.train.size(), split.held_out.size(),
      AreaUnderRoc(BiasModel(table, split.train), table, split.held_out));
}

std::string Summary(const DescriptorTable& table) {
  std::string families;
  for (const DescriptorFamily& f : table.families) {
    absl::StrAppend(&families, families.empty() ? "" : ", ", f.name, " ", f.count);
  }
  return absl::StrFormat(
      "%s: %d compounds, %d descriptors (%s)\n  5 nearest neighbours: held-out R2 %.4f (all %d "
      "folds)\n",
      table.name, table.compounds(), table.columns, families,
      NearestNeighboursRSquared(table, 5, kSeed), kFolds);
}

std::string Summary(const EmojiData& data) {
  std::vector<int64_t> count(data.groups.size());
  for (const uint8_t label : data.train.images.labels) ++count[label];
  const auto largest = std::max_element(count.begin(), count.end()) - count.begin();
  const std::vector<uint8_t>& labels = data.held_out.images.labels;
  const double share =
      static_cast<double>(std::count(labels.begin(), labels.end(), largest)) / labels.size();
  return absl::StrFormat(
      "%s: %d emoji for training, %d held out, in %d groups; %d and %d names in %d languages\n"
      "  always \"%s\": held-out accuracy %.4f\n  nearest group mean of the pictures: %.4f\n",
      data.name, data.train.images.size(), data.held_out.images.size(), data.groups.size(),
      data.train.names.size(), data.held_out.names.size(), data.locales.size(),
      data.groups[largest], share, NearestMeanAccuracy(data.train.images, data.held_out.images));
}

}  // namespace pipelab
