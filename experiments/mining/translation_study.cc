#include "experiments/mining/translation_study.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/mining/mining_report.h"
#include "glog/logging.h"
#include "models/data/subwords.h"
#include "models/mining/dual_scores.h"
#include "models/mining/margin.h"
#include "models/mining/threshold.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kTransformer[] = "Transformer", kDictionary[] = "dictionary", kCopying[] = "copying";
constexpr char kMinedPairs[] = "mined", kTruePairs[] = "true", kNoPairs[] = "-";
constexpr double kLeastRatio = 0.95;
constexpr size_t kShown = 12;

constexpr Wanted kRatio = {
    "mining.translation", "chrF of a translator of mined pairs over that of one of the true pairs"};
constexpr Wanted kLearns = {"mining.translation_learns",
                            "chrF of a translator of mined pairs over that of copying"};
constexpr Wanted kOverDictionary = {
    "mining.translation_over_dictionary",
    "chrF of a translator of mined pairs over that of a dictionary of the same pairs"};
constexpr Wanted kDual = {"mining.dual", "F1 gained by dual cross-entropy"};

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

CrossEntropiesOf EntropiesBy(const Translator& translator) {
  return [&translator](const std::vector<TextPair>& pairs) {
    return translator.CrossEntropies(pairs);
  };
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
    AddRow(kCopying, kNoPairs, 0, [](const Translation& t) { return t.source; });
    AddExamples();
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

  // The Transformer and the dictionary of these pairs; of none nothing, which says nothing.
  absl::StatusOr<std::unique_ptr<Translator>> TrainOn(const std::vector<TextPair>& pairs,
                                                      const char* kind) {
    std::unique_ptr<Translator> translator;
    said_.emplace_back(held_out_.size());
    if (!pairs.empty()) {
      PIPELAB_ASSIGN_OR_RETURN(translator,
                               Translator::Train(pairs, language_, subwords_, options_.translator));
      PIPELAB_ASSIGN_OR_RETURN(said_.back(), translator->Translate(held_out_));
    }
    size_t at = 0;
    AddRow(kTransformer, kind, pairs.size(),
           [&](const Translation&) { return said_.back()[at++]; });
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

  absl::Status MineAgain(const Translator& forward, const std::vector<TextPair>& pairs) {
    PIPELAB_ASSIGN_OR_RETURN(const auto backward, Translator::Train(Swapped(pairs), "en", subwords_,
                                                                    options_.translator));
    const Mined& mined = result_.mined;
    const MiningPool& pool = mined.task.pool;
    const auto fits = [this](const TextPair& p) {
      return Fits(p, subwords_, options_.translator.most_pieces);
    };
    const int k = options_.mine.k;
    PIPELAB_ASSIGN_OR_RETURN(const Neighbours near,
                             DualScores(pool.source, pool.target, mined.mining.candidates, k, fits,
                                        EntropiesBy(forward), EntropiesBy(*backward)));
    result_.dual = true;
    result_.again_mutual = MutualPairs(near, MarginKind::kDifference, k);
    const Threshold threshold =
        ChooseThreshold(near, result_.again_mutual, k, options_.mine.precision);
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

Table QualityTable(const std::vector<TranslationResult>& results) {
  Table t("translation", "Held-out strings, translated from English");
  for (const char* key : {"language", "translator", "pairs"}) t.AddKey(key);
  t.AddColumn({"learned", "pairs learned from", "", "", Origin::kComputed, 0});
  t.AddColumn({"exact", "exactly right", "%", "", Origin::kMeasured, 1});
  t.AddColumn({"chrf", "chrF", "%", "", Origin::kMeasured, 1});
  for (const TranslationResult& r : results) {
    for (const TranslationRow& row : r.rows) {
      t.AddRow({Label(r.mined.language), Label(row.name), Label(row.pairs),
                Value(Origin::kComputed, static_cast<double>(row.count)),
                Measured(100 * row.quality.exact), Measured(100 * row.quality.chrf)});
    }
  }
  return t;
}

// Both scores at their own thresholds, and at the best that the truth can choose.
Table DualTable(const std::vector<TranslationResult>& results) {
  Table t("dual", "Pairs mined again by dual cross-entropy of both directions");
  for (const char* key : {"language", "score", "threshold"}) t.AddKey(key);
  AddScoreColumns(&t);
  for (const TranslationResult& r : results) {
    if (!r.dual) continue;
    const MiningTruth& truth = r.short_truth;
    const auto add = [&](const char* score, const std::vector<MinedPair>& pairs,
                         const std::vector<MinedPair>& mutual) {
      AddScore(&t, {Label(r.mined.language), Label(score), Label("without truth")},
               Judge(pairs, truth));
      AddScore(&t, {Label(r.mined.language), Label(score), Label("best by truth")},
               BestScore(mutual, truth));
    };
    add("word tables", r.before, r.before_mutual);
    add("dual cross-entropy", r.again, r.again_mutual);
  }
  return t;
}

// A value of each language, as text and the least of them.
template <typename Get>
std::pair<double, std::string> Each(const std::vector<TranslationResult>& results, const Get& get) {
  double least = 1e9;
  std::string text;
  for (const TranslationResult& r : results) {
    least = std::min(least, get(r));
    absl::StrAppend(&text, text.empty() ? "" : ", ", r.mined.language,
                    absl::StrFormat(" %.3f", get(r)));
  }
  return {least, text};
}

// 0 where the other one says nothing either: that proves nothing.
double OverRow(const TranslationResult& r, const char* name, const char* pairs) {
  const double other = r.Row(name, pairs).quality.chrf;
  return other == 0 ? 0 : r.Row(kTransformer, kMinedPairs).quality.chrf / other;
}

void AddDualClaim(const std::vector<TranslationResult>& results, Report* report) {
  std::vector<TranslationResult> again;
  std::copy_if(results.begin(), results.end(), std::back_inserter(again),
               [](const TranslationResult& r) { return r.dual; });
  if (again.empty()) return;
  const auto [gain, text] = Each(again, [](const TranslationResult& r) {
    return Judge(r.again, r.short_truth).f1() - Judge(r.before, r.short_truth).f1();
  });
  AddClaim(report, kDual, gain, text, gain > 0, "more than 0",
           "the translators learned from what was mined, wrong pairs too, and know less of words "
           "than the tables do");
}

}  // namespace

const TranslationRow& TranslationResult::Row(const std::string& name,
                                             const std::string& pairs) const {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const TranslationRow& r) {
    return r.name == name && r.pairs == pairs;
  });
  CHECK(row != rows.end()) << name << " of " << pairs;
  return *row;
}

double TranslationResult::Ratio() const { return OverRow(*this, kTransformer, kTruePairs); }

absl::StatusOr<TranslationResult> StudyTranslation(const std::vector<TextPair>& pairs,
                                                   const std::string& language,
                                                   const TranslationStudyOptions& options) {
  CatalogueSplit split = SplitCatalogues(pairs);
  return Study(language, options, std::move(split.held_out)).Run(std::move(split.pool));
}

void AddTranslation(const std::vector<TranslationResult>& results, Report* report) {
  if (results.empty()) return;
  report->AddTable(QualityTable(results));
  const auto [ratio, ratios] = Each(results, [](const auto& r) { return r.Ratio(); });
  AddClaim(report, kRatio, ratio, ratios, ratio >= kLeastRatio, "0.95 at least",
           "wrong and missing pairs cost more than a twentieth of the quality");
  const auto [copy, copies] =
      Each(results, [](const auto& r) { return OverRow(r, kCopying, kNoPairs); });
  AddClaim(report, kLearns, copy, copies, copy > 1, "above 1",
           "too few steps and pairs to learn to translate");
  const auto [word, words] =
      Each(results, [](const auto& r) { return OverRow(r, kDictionary, kMinedPairs); });
  AddClaim(report, kOverDictionary, word, words, word > 1, "above 1",
           "a Transformer needs more pairs and steps than these to know as many words");
  if (std::any_of(results.begin(), results.end(), [](const auto& r) { return r.dual; })) {
    report->AddTable(DualTable(results));
  }
  AddDualClaim(results, report);
}

void NoTranslationClaims(const std::string& reason, Report* report) {
  for (const Wanted& wanted : {kRatio, kLearns, kOverDictionary, kDual}) {
    Claim c = OwnClaim(wanted.id, wanted.text);
    NotMade(&c, reason);
    report->AddClaim(std::move(c));
  }
}

std::string TranslationExamples(const std::vector<TranslationResult>& results) {
  std::string page;
  for (const TranslationResult& r : results) {
    absl::StrAppend(&page, "\n## ", r.mined.language, ", translated\n\n");
    for (const std::string& example : r.examples) absl::StrAppend(&page, "* ", example, "\n");
  }
  return page;
}

}  // namespace pipelab
