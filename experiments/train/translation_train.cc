// Trains a Transformer to say English names in other languages, character by character, and asks
// whether it says names that it never saw better than copying and than a dictionary of words.
//
//   tools/bazel run //experiments:translation_train
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/flags/option_checks.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/train/run_study.h"
#include "experiments/train/study.h"
#include "models/data/greedy_translator.h"
#include "models/data/package_cache.h"
#include "models/data/translation_baselines.h"
#include "models/data/translation_batches.h"
#include "models/data/translation_intervals.h"
#include "models/data/translations.h"
#include "models/zoo/transformer.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace translation_train_study {

STUDY_FLAG(int, layers, 2, "layers of the encoder, and of the decoder");
STUDY_FLAG(int, hidden, 128, "width of the Transformer");
STUDY_FLAG(int, heads, 4, "attention heads");
STUDY_FLAG(int, feed_forward, 512, "inner width of the feed-forward parts");
STUDY_FLAG(double, dropout, 0, "dropout rate");
STUDY_FLAG(int, name_length, 24,
           "characters of the longest names, in English and in the other language; pairs with a "
           "longer one are left out everywhere");
STUDY_FLAG(int, least_count, 20, "how often a character must be in the training names to be known");
STUDY_FLAG(int, judged, 2000, "held-out pairs that are judged, drawn by seed; 0: all");

constexpr int64_t kSyntheticNames = 300, kSyntheticSeed = 1;
constexpr int64_t kMostLength = 1 << 10, kMostJudged = 1 << 20;
constexpr int64_t kCurveSamples = 256;
constexpr int64_t kDecodedAtOnce = 64;
constexpr int kResamples = 1000;
constexpr size_t kShown = 6;

TranslationOptions LengthsFromFlags() {
  TranslationOptions options;
  options.source_length = absl::GetFlag(FLAGS_name_length) + 2;  // the locale's token and the end
  options.target_length = absl::GetFlag(FLAGS_name_length) + 1;
  options.least_count = absl::GetFlag(FLAGS_least_count);
  return options;
}

TransformerConfig ModelFromFlags(int64_t vocabulary) {
  const TranslationOptions lengths = LengthsFromFlags();
  TransformerConfig config;
  config.layers = absl::GetFlag(FLAGS_layers);
  config.hidden = absl::GetFlag(FLAGS_hidden);
  config.heads = absl::GetFlag(FLAGS_heads);
  config.feed_forward = absl::GetFlag(FLAGS_feed_forward);
  config.source_tokens = lengths.source_length;
  config.target_tokens = lengths.target_length;
  config.vocabulary = vocabulary;
  config.dropout = absl::GetFlag(FLAGS_dropout);
  config.shared_embedding = true;
  return config;
}

absl::Status Check() {
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--name_length", absl::GetFlag(FLAGS_name_length), 1, kMostLength));
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--least_count", absl::GetFlag(FLAGS_least_count), 1, 1 << 20));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--judged", absl::GetFlag(FLAGS_judged), 0, kMostJudged));
  return BuildTransformer(ModelFromFlags(/*vocabulary=*/1000)).status();
}

// A translator, and what it says of the pairs that are judged.
struct Said {
  std::string name;
  std::vector<std::string> said;
};

// What training reads, and what the judge found.
struct Names {
  TranslationCorpus whole;  // the training part, with the names that are too long for the model
  TranslationData data;
  TranslationCorpus judged;
  uint64_t seed = 1;
  int64_t parameters = 0;
  std::vector<std::string> said;
};

// Some pairs of the corpus, or all where `pairs` is 0, in an order drawn by seed.
TranslationCorpus Sample(const TranslationCorpus& corpus, int64_t pairs, uint64_t seed) {
  const auto all = static_cast<int64_t>(corpus.translations.size());
  if (pairs == 0 || pairs > all) pairs = all;
  const Shuffle shuffle(all, seed, "data/judged");
  TranslationCorpus sample;
  sample.name = corpus.name;
  sample.locales = corpus.locales;
  for (int64_t i = 0; i < pairs; ++i) {
    sample.translations.push_back(corpus.translations[shuffle.At(i)]);
  }
  return sample;
}

absl::Status Translate(SerialTrainer* trained, Names* names) {
  const GreedyTranslator translator(
      names->data.vocabulary, LengthsFromFlags(), kDecodedAtOnce,
      [&](const BatchSource& rows, int64_t samples) -> absl::StatusOr<std::vector<float>> {
        std::vector<float> logits;
        PIPELAB_RETURN_IF_ERROR(trained->Evaluate(rows, 0, 0, samples, &logits).status());
        return logits;
      });
  PIPELAB_ASSIGN_OR_RETURN(names->said, translator.Translate(names->judged));
  return absl::OkStatus();
}

TranslationQuality QualityOf(const Names& names, const std::vector<std::string>& said) {
  size_t at = 0;
  return Evaluate(names.judged, [&](const Translation&) { return said[at++]; });
}

std::string Intervals(const Names& names, const Said& by) {
  const TranslationIntervals i = BootstrapIntervals(names.judged, by.said, kResamples, names.seed);
  return absl::StrFormat("%s: exact %.1f to %.1f %%, chrF %.1f to %.1f %%", by.name,
                         100 * i.exact.low, 100 * i.exact.high, 100 * i.chrf.low,
                         100 * i.chrf.high);
}

// The first names as they came out.
std::string Examples(const Names& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kShown, names.said.size()); ++i) {
    const Translation& t = names.judged.translations[i];
    shown.push_back(absl::StrFormat("%s in %s: %s (%s)", t.source, names.judged.locales[t.locale],
                                    names.said[i], t.target));
  }
  return absl::StrCat("Held-out names as the Transformer says them, and as they are: ",
                      absl::StrJoin(shown, "; "));
}

Quality::Claim Over(const std::string& id, const char* what, double ours, const std::string& whose,
                    double theirs) {
  return Quality::Above(absl::StrCat(id, "_over_", whose),
                        absl::StrCat(what, " above that of ", whose), 100 * ours, 100 * theirs,
                        "%");
}

absl::StatusOr<Quality> Judge(const Names& names) {
  const DictionaryTranslator dictionary(names.whole);
  std::vector<Said> all = {
      {absl::StrCat("Transformer, ", names.parameters, " parameters"), names.said},
      {"dictionary", {}},
      {"copying", {}}};
  for (const Translation& t : names.judged.translations) {
    all[1].said.push_back(dictionary.Translate(t.locale, t.source));
    all[2].said.push_back(t.source);
  }
  Quality quality;
  quality.caption = absl::StrFormat("%d of %d held-out pairs", names.judged.translations.size(),
                                    names.data.held_out->translations.size());
  quality.metrics = {{"exact", "exactly right", "%", 1}, {"chrf", "chrF", "%", 1}};
  std::vector<std::string> intervals;
  const TranslationQuality ours = QualityOf(names, names.said);
  for (const Said& by : all) {
    const TranslationQuality q = QualityOf(names, by.said);
    quality.rows.push_back({by.name, {100 * q.exact, 100 * q.chrf}});
    intervals.push_back(Intervals(names, by));
    if (&by == &all[0]) continue;
    quality.claims.push_back(Over("exact", "share of exact names", ours.exact, by.name, q.exact));
    quality.claims.push_back(Over("chrf", "chrF", ours.chrf, by.name, q.chrf));
  }
  quality.notes = {
      absl::StrCat(
          "95 % intervals (bootstrap over English strings): ", absl::StrJoin(intervals, "; "), "."),
      absl::StrFormat(
          "A held-out English string is held out in every language. Names are of at most %d "
          "characters on both sides; %d pairs are longer, and left out of training and judgement. "
          "The dictionary is made of all training pairs, the longer ones too.",
          absl::GetFlag(FLAGS_name_length), names.data.too_long),
      absl::StrFormat("Losses are means over all %d places of a translation; those behind its end "
                      "count as 0.",
                      LengthsFromFlags().target_length),
      Examples(names)};
  return quality;
}

absl::StatusOr<StudyWork> Load(const StudyRequest& request) {
  TranslationCorpus corpus = SyntheticTranslations(kSyntheticNames, kSyntheticSeed);
  if (!request.synthetic) {
    PIPELAB_ASSIGN_OR_RETURN(corpus, FetchIsoCodes(DefaultDataCache()));
  }
  TranslationSplit split =
      request.validation ? SplitForValidation(corpus) : SplitTranslations(corpus);
  const auto names = std::make_shared<Names>();
  names->whole = split.train;
  names->seed = request.seed;
  names->data = MakeTranslationData(std::move(split), LengthsFromFlags());
  const TranslationData& data = names->data;
  if (data.train->translations.empty() || data.held_out->translations.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--name_length=", absl::GetFlag(FLAGS_name_length),
                     ": no pair of names is that short for training, or held out"));
  }
  names->judged = Sample(*data.held_out, absl::GetFlag(FLAGS_judged), request.seed);
  StudyPart part;
  PIPELAB_ASSIGN_OR_RETURN(part.graph, BuildTransformer(ModelFromFlags(data.vocabulary->size())));
  names->parameters = part.graph.num_parameters();
  const auto train = static_cast<int64_t>(data.train->translations.size());
  const auto held_out = static_cast<int64_t>(data.held_out->translations.size());
  part.train = std::make_shared<TranslationBatchSource>(
      data.train, data.vocabulary, LengthsFromFlags(),
      ExampleOrder(train, request.batch_samples, request.seed, "data"));
  const auto judged = static_cast<int64_t>(names->judged.translations.size());
  part.held_out = std::make_shared<TranslationBatchSource>(
      std::shared_ptr<const TranslationCorpus>(names, &names->judged), data.vocabulary,
      LengthsFromFlags(), ExampleOrder(judged));
  part.held_out_samples = std::min(judged, kCurveSamples);
  part.judge = [names](SerialTrainer* trained) { return Translate(trained, names.get()); };
  StudyWork work;
  work.data = absl::StrCat(request.synthetic ? "synthetic names (" : "names of iso-codes (", train,
                           " pairs for training, ", held_out, " held out, ", corpus.locales.size(),
                           " locales, ", data.vocabulary->size(), " tokens)");
  work.parts.push_back(std::move(part));
  work.quality = [names] { return Judge(*names); };
  return work;
}

}  // namespace translation_train_study

int RunTranslationTrainStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  Study study;
  study.name = "translation_train";
  study.title = "A Transformer on names in many languages";
  study.summary =
      "A small encoder-decoder Transformer learns to say English names of languages, countries, "
      "regions, currencies and scripts in 157 locales, and must say names that it never saw better "
      "than copying and than a dictionary of words.";
  study.loss_unit = "nats/place";
  study.defaults = {{"steps", "4000"},         {"micro_batch_size", "8"}, {"micro_batches", "8"},
                    {"learning_rate", "2e-3"}, {"warmup_steps", "300"},   {"rate_decay", "cosine"},
                    {"devices", "2"}};
  study.optimizer.adam.beta2 = 0.98f;
  study.check = translation_train_study::Check;
  study.load = translation_train_study::Load;
  return RunStudy(argc, argv, study);
}

}  // namespace pipelab
