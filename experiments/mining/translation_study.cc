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

// What translators learn, say and judge.
std::vector<TextPair> ShortOnes(const std::vector<TextPair>& pairs, const Subwords& subwords,
                                int64_t most_pieces) {
  std::vector<TextPair> some;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(some),
               [&](const TextPair& p) { return Fits(p, subwords, most_pieces); });
  return some;
}

// Pieces of the words of both lists: it takes no pair to learn them.
Subwords SubwordsOf(const MiningPool& pool, int merges) {
  std::vector<std::string> texts = pool.source;
  texts.insert(texts.end(), pool.target.begin(), pool.target.end());
  return Subwords::Learn(texts, merges);
}

std::pair<int32_t, int32_t> PlacesOf(const MinedPair& p) { return {p.x, p.y}; }
std::pair<int32_t, int32_t> PlacesOf(const std::pair<int32_t, int32_t>& p) { return p; }

TextPair TextOf(const MiningPool& pool, std::pair<int32_t, int32_t> places) {
  return {pool.source[places.first], pool.target[places.second]};
}

// The texts of MinedPairs or of the truth.
template <typename Pairs>
std::vector<TextPair> TextsOf(const MiningPool& pool, const Pairs& pairs) {
  std::vector<TextPair> texts;
  for (const auto& p : pairs) texts.push_back(TextOf(pool, PlacesOf(p)));
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
    const int64_t most = options_.translator.most_pieces;
    held_out_ = ShortOnes(held_out_, subwords_, most);
    corpus_ = CorpusOf(held_out_, language_);
    result_.held_out = static_cast<int64_t>(held_out_.size());
    const auto mined = ShortOnes(TextsOf(pool, result_.mined.mining.pairs), subwords_, most);
    const auto right = ShortOnes(TextsOf(pool, result_.mined.task.truth), subwords_, most);
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
    const Mined& mined = result_.mined;
    const MiningPool& pool = mined.task.pool;
    const auto fits = [this](const TextPair& p) {
      return Fits(p, subwords_, options_.translator.most_pieces);
    };
    const int k = options_.mine.k;
    PIPELAB_ASSIGN_OR_RETURN(
        const Neighbours near,
        DualScores(pool.source, pool.target, mined.mining.candidates, k, fits, there, back));
    result_.dual = true;
    result_.again_mutual = MutualPairs(near, MarginKind::kDifference, k);
    const Threshold threshold =
        ChooseThreshold(EstimatePrecision(near, result_.again_mutual, MarginKind::kDifference, k),
                        options_.mine.precision);
    if (threshold.found) result_.again = AtLeast(result_.again_mutual, threshold.margin);
    const auto keep = [&](const auto& pairs, auto* kept) {
      for (const auto& p : pairs) {
        if (fits(TextOf(pool, PlacesOf(p)))) kept->push_back(p);
      }
    };
    keep(mined.task.truth, &result_.short_truth);
    keep(mined.mining.pairs, &result_.before);
    keep(mined.mining.iterations.back().mutual, &result_.before_mutual);
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
