#include "experiments/mining/translator.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/character_vocabulary.h"
#include "models/data/example_order.h"
#include "models/data/greedy_translator.h"
#include "models/zoo/transformer.h"
#include "pipelines/fill/fill_evaluation.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kTranslatedAtOnce = 64;

TransformerConfig ConfigOf(const TranslatorOptions& options, const TranslationOptions& lengths,
                           int64_t vocabulary) {
  TransformerConfig config;
  config.layers = options.layers;
  config.hidden = options.hidden;
  config.heads = options.heads;
  config.feed_forward = options.feed_forward;
  config.source_tokens = lengths.source_length;
  config.target_tokens = lengths.target_length;
  config.vocabulary = vocabulary;
  config.dropout = options.dropout;
  config.shared_embedding = true;
  return config;
}

TrainingOptions TrainingOf(const TranslatorOptions& options) {
  TrainingOptions training;
  training.config.scheme = options.scheme;
  training.config.pipeline = options.devices;
  training.config.micro_batches = options.micro_batches;
  training.config.micro_batch_size = options.micro_batch_size;
  training.seed = options.seed;
  training.optimizer.adam.beta2 = 0.98f;
  training.optimizer.adam.learning_rate = options.learning_rate;
  training.optimizer.schedule = {std::min(options.warmup_steps, options.steps / 2),
                                 RateDecay::kCosine, options.steps};
  training.trace = false;
  training.fill_works = options.fill_works;
  training.fill = options.fill;
  return training;
}

// -log softmax(logits)[target].
double CrossEntropy(absl::Span<const float> logits, int32_t target) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - most));
  return std::log(sum) - static_cast<double>(logits[target] - most);
}

// Over the pieces of a target and its end, of its places' logits [target_length, vocabulary].
double MeanCrossEntropy(const TranslationVocabulary& vocabulary, const std::string& target,
                        absl::Span<const float> logits) {
  const auto width = static_cast<size_t>(vocabulary.size());
  std::vector<int32_t> said = vocabulary.Encode(target);
  said.push_back(TranslationVocabulary::kEnd);
  double sum = 0;
  for (size_t t = 0; t < said.size(); ++t) {
    sum += CrossEntropy(logits.subspan(t * width, width), said[t]);
  }
  return sum / static_cast<double>(said.size());
}

}  // namespace

bool Fits(const TextPair& pair, const Subwords& subwords, int64_t most_pieces) {
  const auto fits = [&](const std::string& text) {
    return CharactersOf(subwords.Encode(text)).size() <= static_cast<size_t>(most_pieces);
  };
  return fits(pair.source) && fits(pair.target);
}

TranslationCorpus CorpusOf(const std::vector<TextPair>& pairs, const std::string& locale) {
  TranslationCorpus corpus;
  corpus.name = "catalogues";
  corpus.locales = {locale};
  for (const TextPair& p : pairs) corpus.translations.push_back({0, p.source, p.target});
  return corpus;
}

absl::StatusOr<std::unique_ptr<Translator>> Translator::Train(const std::vector<TextPair>& pairs,
                                                              const std::string& locale,
                                                              const Subwords& subwords,
                                                              const TranslatorOptions& options) {
  std::unique_ptr<Translator> translator(new Translator(subwords));
  translator->locale_ = locale;
  translator->options_ = options;
  TranslationOptions& lengths = translator->lengths_;
  lengths.source_length = options.most_pieces + 2;  // the locale's token and the end
  lengths.target_length = options.most_pieces + 1;
  lengths.least_count = options.least_count;
  TranslationSplit split;
  split.train = translator->Encoded(pairs);
  const TranslationData data = MakeTranslationData(std::move(split), lengths);
  if (data.train->translations.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(pairs.size(), " pairs of English and ", locale,
                     ": none is short enough to train a translator on"));
  }
  PIPELAB_RETURN_IF_ERROR(translator->TrainOn(data));
  return translator;
}

TranslationCorpus Translator::Encoded(const std::vector<TextPair>& pairs) const {
  TranslationCorpus corpus = CorpusOf(pairs, locale_);
  for (Translation& t : corpus.translations) {
    t.source = subwords_.Encode(t.source);
    t.target = subwords_.Encode(t.target);
  }
  return corpus;
}

absl::Status Translator::TrainOn(const TranslationData& data) {
  vocabulary_ = data.vocabulary;
  pairs_ = static_cast<int64_t>(data.train->translations.size());
  PIPELAB_ASSIGN_OR_RETURN(graph_,
                           BuildTransformer(ConfigOf(options_, lengths_, vocabulary_->size())));
  batches_ = std::make_unique<TranslationBatchSource>(
      data.train, vocabulary_, lengths_,
      ExampleOrder(pairs_, options_.micro_batches * options_.micro_batch_size, options_.seed,
                   "data"));
  PIPELAB_ASSIGN_OR_RETURN(const auto training,
                           PipelineTraining::Create(graph_, *batches_, TrainingOf(options_)));
  Progress progress(absl::StrCat("translator of ", locale_), options_.steps, "step");
  const int64_t judged = std::max<int64_t>(1, options_.steps / 10);
  for (int64_t step = 1; step <= options_.steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep done, training->Step());
    if (!std::isfinite(done.loss)) {
      return absl::FailedPreconditionError(
          absl::StrCat("the translator of ", locale_, " diverges: the loss of step ", step,
                       " is not finite; a lower --learning_rate may help"));
    }
    if (step > options_.steps - judged) loss_ += done.loss / static_cast<double>(judged);
    progress.Update(step, absl::StrCat("loss ", done.loss));
  }
  progress.Finish();
  for (const FillReport& report : training->FillReports()) {
    for (const FillJobReport& job : report.jobs) {
      if (!job.status.ok()) std::cerr << job.status.message() << "\n";
    }
  }
  options_.fill_works = nullptr;  // of this training: what they refer to may end with it
  backend_ = MakeCpuBackend(&arena_);
  SerialOptions serial;
  serial.data = batches_.get();
  serial.seed = options_.seed;
  serial.optimizer = TrainingOf(options_).optimizer;
  PIPELAB_ASSIGN_OR_RETURN(network_, SerialTrainer::Create(graph_, backend_.get(), serial));
  PIPELAB_ASSIGN_OR_RETURN(const TrainingState state, training->State());
  return network_->SetState(state);
}

absl::StatusOr<std::vector<std::string>> Translator::Translate(
    const std::vector<TextPair>& pairs) const {
  const GreedyTranslator greedy(
      vocabulary_, lengths_, kTranslatedAtOnce,
      [&](const BatchSource& rows, int64_t samples) -> absl::StatusOr<std::vector<float>> {
        std::vector<float> logits;
        PIPELAB_RETURN_IF_ERROR(network_->Evaluate(rows, 0, 0, samples, &logits).status());
        return logits;
      });
  PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> said, greedy.Translate(Encoded(pairs)));
  for (std::string& text : said) text = subwords_.Decode(text);
  return said;
}

absl::StatusOr<std::vector<double>> Translator::CrossEntropies(const std::vector<TextPair>& pairs,
                                                               std::vector<double> known) const {
  const auto nats = std::make_shared<std::vector<double>>(std::move(known));
  if (nats->size() == pairs.size()) return *nats;
  PIPELAB_ASSIGN_OR_RETURN(const auto job, CrossEntropyJob(pairs, backend_.get(), nats));
  while (!job->over()) PIPELAB_RETURN_IF_ERROR(job->RunNext());
  return *nats;
}

absl::StatusOr<std::unique_ptr<FillWork>> Translator::CrossEntropyJob(
    const std::vector<TextPair>& pairs, Backend* backend,
    const std::shared_ptr<std::vector<double>>& nats) const {
  const auto corpus = std::make_shared<const TranslationCorpus>(Encoded(pairs));
  const auto rows = std::make_shared<const TranslationBatchSource>(
      corpus, vocabulary_, lengths_, ExampleOrder(static_cast<int64_t>(pairs.size())));
  auto results = std::make_shared<EvaluationResults>();
  results->samples = static_cast<int64_t>(nats->size());
  EvaluationOptions options;
  options.samples = static_cast<int64_t>(pairs.size());
  options.samples_of_piece = kScoredAtOnce;
  options.seed = options_.seed;
  options.state = State();
  // It keeps the rows for as long as the job is there.
  options.take = [rows, corpus, nats, vocabulary = vocabulary_, length = lengths_.target_length](
                     int64_t first, absl::Span<const float> logits) {
    const int64_t of_row = length * vocabulary->size();
    const int64_t rows_of_piece = static_cast<int64_t>(logits.size()) / of_row;
    for (int64_t i = 0; i < rows_of_piece; ++i) {
      nats->push_back(MeanCrossEntropy(*vocabulary, corpus->translations[first + i].target,
                                       logits.subspan(i * of_row, of_row)));
    }
  };
  return MakeEvaluation(absl::StrCat("cross-entropies of ", locale_), graph_, rows.get(), backend,
                        options, std::move(results));
}

}  // namespace pipelab
