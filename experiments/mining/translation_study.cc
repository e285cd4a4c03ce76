#include "experiments/mining/translation_study.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/mining/scoring_in_waits.h"
#include "glog/logging.h"
#include "models/data/subwords.h"
#include "models/mining/dual_scores.h"
#include "models/mining/margin.h"
#include "models/mining/threshold.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kShown = 12;

// Pieces of the words of both lists: it takes no pair to learn them.
Subwords SubwordsOf(const MiningPool& pool, int merges) {
  std::vector<std::string> texts = pool.source;
  texts.insert(texts.end(), pool.target.begin(), pool.target.end());
  return Subwords::Learn(texts, merges);
}

// What says which sentences of a pool are a pair, and text itself.
TextPair TextOf(const MiningPool& pool, const MinedPair& p) {
  return {pool.source[p.x], pool.target[p.y]};
}
TextPair TextOf(const MiningPool& pool, const std::pair<int32_t, int32_t>& places) {
  return {pool.source[places.first], pool.target[places.second]};
}
TextPair TextOf(const MiningPool& /*pool*/, const TextPair& p) { return p; }

template <typename Pairs>
std::vector<TextPair> TextsOf(const MiningPool& pool, const Pairs& pairs) {
  std::vector<TextPair> texts;
  for (const auto& p : pairs) texts.push_back(TextOf(pool, p));
  return texts;
}

std::vector<TextPair> Swapped(const std::vector<TextPair>& pairs) {
  std::vector<TextPair> swapped;
  for (const TextPair& p : pairs) swapped.push_back({p.target, p.source});
  return swapped;
}

// One study while its results come.
class Study {
 public:
  Study(const std::string& language, const TranslationStudyOptions& options,
        std::vector<TextPair> held_out)
      : language_(language), options_(options), held_out_(std::move(held_out)) {}

  absl::StatusOr<TranslationResult> Run(std::vector<TextPair> strings) {
    ParallelText text;
    text.pairs = std::move(strings);
    PIPELAB_ASSIGN_OR_RETURN(
        result_.mined,
        MineTask(language_, "strings", MakeMiningTask(text, options_.task), options_.mine));
    const MiningPool& pool = result_.mined.task.pool;
    subwords_ = SubwordsOf(pool, options_.merges);
    held_out_ = Short(held_out_);
    corpus_ = CorpusOf(held_out_, language_);
    result_.held_out = static_cast<int64_t>(held_out_.size());
    result_.short_truth = Short(result_.mined.task.truth);
    result_.before = Short(result_.mined.mining.pairs);
    const std::vector<TextPair> mined = TextsOf(pool, result_.before),
                                right = TextsOf(pool, result_.short_truth);
    PIPELAB_ASSIGN_OR_RETURN(const auto of_mined, TrainOn(mined, kMinedPairs));
    PIPELAB_ASSIGN_OR_RETURN(const auto of_right, TrainOn(right, kTruePairs));
    result_.trained = options_.translator.steps > 0;
    AddRow(kCopying, kNoPairs, 0, [](const Translation& t) { return t.source; });
    if (result_.trained) AddExamples();
    if (options_.dual && of_mined != nullptr) {
      PIPELAB_RETURN_IF_ERROR(MineAgain(*of_mined, mined));
    }
    return std::move(result_);
  }

 private:
  // What translators learn, say and judge.
  template <typename Pairs>
  Pairs Short(const Pairs& pairs) const {
    Pairs some;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(some),
                 [this](const auto& p) { return IsShort(TextOf(result_.mined.task.pool, p)); });
    return some;
  }
  bool IsShort(const TextPair& pair) const {
    return Fits(pair, subwords_, options_.translator.most_pieces);
  }

  template <typename Translate>
  void AddRow(const char* name, const char* pairs, size_t count, const Translate& translate) {
    result_.rows.push_back(
        {name, pairs, static_cast<int64_t>(count), Evaluate(corpus_, translate)});
    std::cerr << absl::StrFormat("%s, %s of %d pairs (%s): chrF %.1f %%\n", language_, name, count,
                                 pairs, 100 * result_.rows.back().quality.chrf);
  }

  // The Transformer, where there are steps, and the dictionary of these pairs. A Transformer of no
  // pair says nothing.
  absl::StatusOr<std::unique_ptr<Translator>> TrainOn(const std::vector<TextPair>& pairs,
                                                      const char* kind) {
    std::unique_ptr<Translator> translator;
    said_.emplace_back(held_out_.size());
    if (!pairs.empty() && options_.translator.steps > 0) {
      PIPELAB_ASSIGN_OR_RETURN(translator,
                               Translator::Train(pairs, language_, subwords_, options_.translator));
      PIPELAB_ASSIGN_OR_RETURN(said_.back(), translator->Translate(held_out_));
    }
    if (options_.translator.steps > 0) {
      size_t at = 0;
      AddRow(kTransformer, kind, pairs.size(),
             [&](const Translation&) { return said_.back()[at++]; });
    }
    const DictionaryTranslator dictionary(CorpusOf(pairs, language_));
    AddRow(kDictionary, kind, pairs.size(),
           [&](const Translation& t) { return dictionary.Translate(0, t.source); });
    return translator;
  }

  void AddExamples() {
    for (size_t i = 0; i < std::min(kShown, held_out_.size()); ++i) {
      result_.examples.push_back(absl::StrCat(held_out_[i].source, "\n  * mined: ", said_[0][i],
                                              "\n  * true: ", said_[1][i],
                                              "\n  * reference: ", held_out_[i].target));
    }
  }

  // The candidates' scores by the forward translator, while the backward one is trained or after.
  absl::StatusOr<std::vector<double>> ScoreAndTrain(const Translator& forward,
                                                    const std::vector<TextPair>& candidates,
                                                    const std::vector<TextPair>& pairs,
                                                    std::unique_ptr<Translator>* backward) {
    TranslatorOptions options = options_.translator;
    ScoringInWaits scoring(&forward, candidates, options.devices);
    if (options_.dual_fill) options.fill_works = scoring.Works();
    PIPELAB_ASSIGN_OR_RETURN(*backward,
                             Translator::Train(Swapped(pairs), "en", subwords_, options));
    if (options_.dual_fill) {
      std::cerr << absl::StrFormat("%s: %d of %d candidates scored in waits, the others now\n",
                                   language_, scoring.scored(), candidates.size());
    }
    return scoring.Finish();
  }

  absl::Status MineAgain(const Translator& forward, const std::vector<TextPair>& pairs) {
    std::unique_ptr<Translator> backward;
    const CrossEntropiesOf there = [&](const std::vector<TextPair>& some) {
      return ScoreAndTrain(forward, some, pairs, &backward);
    };
    const CrossEntropiesOf back = [&](const std::vector<TextPair>& some) {
      return backward->CrossEntropies(some);
    };
    const MiningPool& pool = result_.mined.task.pool;
    const Mining& mining = result_.mined.mining;
    const auto fits = [this](const TextPair& pair) { return IsShort(pair); };
    const int k = options_.mine.k;
    PIPELAB_ASSIGN_OR_RETURN(
        const Neighbours near,
        DualScores(pool.source, pool.target, mining.candidates, k, fits, there, back));
    result_.dual = true;
    result_.before_mutual = Short(mining.iterations.back().mutual);
    result_.again_mutual = MutualPairs(near, MarginKind::kDifference, k);
    const Threshold threshold =
        ChooseThreshold(EstimatePrecision(near, result_.again_mutual, MarginKind::kDifference, k),
                        options_.mine.precision);
    if (threshold.found) result_.again = AtLeast(result_.again_mutual, threshold.margin);
    return absl::OkStatus();
  }

  const std::string language_;
  const TranslationStudyOptions options_;
  std::vector<TextPair> held_out_;
  TranslationCorpus corpus_;  // of these
  Subwords subwords_ = Subwords::Learn({}, 0);
  std::vector<std::vector<std::string>> said_;
  TranslationResult result_;
};

}  // namespace

const TranslationRow& TranslationResult::Row(const std::string& name,
                                             const std::string& pairs) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const TranslationRow& r) {
    return r.name == name && r.pairs == pairs;
  });
  CHECK(row != rows.end()) << name << " of " << pairs;
  return *row;
}

absl::StatusOr<TranslationResult> StudyTranslation(const std::vector<TextPair>& pairs,
                                                   const std::string& language,
                                                   const TranslationStudyOptions& options) {
  CatalogueSplit split = SplitCatalogues(pairs);
  return Study(language, options, std::move(split.held_out)).Run(std::move(split.pool));
}

}  // namespace pipelab
