#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/mining/mining_report.h"
#include "experiments/mining/translation_study.h"

namespace pipelab {
namespace {

constexpr double kLeastRatio = 0.95;
constexpr char kNoSteps[] = "no Transformer is trained, as with --steps=0";

constexpr Wanted kRatio = {
    "mining.translation", "chrF of a translator of mined pairs over that of one of the true pairs"};
constexpr Wanted kLearns = {"mining.translation_learns",
                            "chrF of a translator of mined pairs over that of copying"};
constexpr Wanted kOverDictionary = {
    "mining.translation_over_dictionary",
    "chrF of a translator of mined pairs over that of a dictionary of the same pairs"};
constexpr Wanted kWords = {
    "mining.dictionary", "chrF of a dictionary of mined pairs over that of one of the true pairs"};
constexpr Wanted kDual = {"mining.dual", "F1 gained by dual cross-entropy"};

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

template <typename Get>
MiningFigures TranslationFigures(const std::vector<TranslationResult>& results, const Get& get) {
  MiningFigures figures;
  for (const TranslationResult& r : results) {
    figures.of_language.emplace_back(r.mined.language, get(r));
  }
  return figures;
}

// The ratio of two translators; 0 where the other one says nothing: that proves nothing.
double Over(const TranslationRow& ours, const TranslationRow& other) {
  return other.quality.chrf == 0 ? 0 : ours.quality.chrf / other.quality.chrf;
}

void AddDualClaim(const std::vector<TranslationResult>& results, Report* report) {
  std::vector<TranslationResult> again;
  std::copy_if(results.begin(), results.end(), std::back_inserter(again),
               [](const TranslationResult& r) { return r.dual; });
  if (again.empty()) return AddNotMade({kDual}, kNoSteps, report);
  const MiningFigures gain = TranslationFigures(again, [](const TranslationResult& r) {
    return Judge(r.again, r.short_truth).f1() - Judge(r.before, r.short_truth).f1();
  });
  AddClaim(report, kDual, gain.Least(), gain.Text(), gain.Least() > 0, "more than 0",
           "the translators learned from what was mined, wrong pairs too, and know less of words "
           "than the tables do");
}

void AddTransformerClaims(const std::vector<TranslationResult>& results, Report* report) {
  const bool trained = std::all_of(results.begin(), results.end(),
                                   [](const TranslationResult& r) { return r.trained; });
  if (!trained) return AddNotMade({kRatio, kLearns, kOverDictionary}, kNoSteps, report);
  const auto over = [&](const char* name, const char* pairs) {
    return TranslationFigures(results, [&](const TranslationResult& r) {
      return Over(r.Row(kTransformer, kMinedPairs), r.Row(name, pairs));
    });
  };
  const MiningFigures ratio = over(kTransformer, kTruePairs), copy = over(kCopying, kNoPairs),
                      word = over(kDictionary, kMinedPairs);
  AddClaim(
      report, kRatio, ratio.Least(), ratio.Text(), ratio.Least() >= kLeastRatio, "0.95 at least",
      "a Transformer of so few pairs and steps has hardly learned to translate, and wrong pairs "
      "slow it down");
  AddClaim(report, kLearns, copy.Least(), copy.Text(), copy.Least() > 1, "above 1",
           "too few pairs and steps to learn to translate");
  AddClaim(report, kOverDictionary, word.Least(), word.Text(), word.Least() > 1, "above 1",
           "a Transformer needs more pairs and steps than these to know as many words");
}

}  // namespace

void AddTranslation(const std::vector<TranslationResult>& results, Report* report) {
  if (results.empty()) return NoTranslationClaims("no language was translated", report);
  report->AddTable(QualityTable(results));
  const MiningFigures words = TranslationFigures(results, [](const TranslationResult& r) {
    return Over(r.Row(kDictionary, kMinedPairs), r.Row(kDictionary, kTruePairs));
  });
  AddClaim(report, kWords, words.Least(), words.Text(), words.Least() >= kLeastRatio,
           "0.95 at least",
           "where no margin reaches the wanted precision nothing is mined, and nothing is learned");
  AddTransformerClaims(results, report);
  if (std::any_of(results.begin(), results.end(), [](const auto& r) { return r.dual; })) {
    report->AddTable(DualTable(results));
  }
  AddDualClaim(results, report);
}

void NoTranslationClaims(const std::string& reason, Report* report) {
  AddNotMade({kWords, kRatio, kLearns, kOverDictionary, kDual}, reason, report);
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
