// What mined pairs are worth: a translator trained on them beside one trained on the true pairs of
// the same pool, and beside copying and a dictionary of words; and the pairs mined again with the
// translators' scores.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextPair> pairs, LoadCatalogues(folders, "fr"));
//   PIPELAB_ASSIGN_OR_RETURN(results.emplace_back(), StudyTranslation(pairs, "fr", options));
//   AddTranslation(results, &report);                 // tables and claims
//
// The pool is MakeMiningTask's of the strings that are not held out (SplitCatalogues). Quality is
// chrF of the held-out strings. Both translators have the same options: model, steps, seed. They
// learn, say and judge strings of at most so many pieces; what is mined is of any length.
#ifndef PIPELAB_EXPERIMENTS_MINING_TRANSLATION_STUDY_H_
#define PIPELAB_EXPERIMENTS_MINING_TRANSLATION_STUDY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/mining/mined.h"
#include "experiments/mining/translator.h"
#include "experiments/report/report.h"
#include "models/data/catalogues.h"
#include "models/data/translation_baselines.h"

namespace pipelab {

struct TranslationStudyOptions {
  TranslatorOptions translator;
  MineOptions mine;
  MiningTaskOptions task;
  int merges = 1000;  // of subwords, which are learned from both lists of the pool
  bool dual = false;  // whether it is mined again
  // Whether the forward translator then scores in the waits of the backward one's training. Results
  // are the same bits.
  bool dual_fill = false;
};

// Translators, and what they learned from.
inline constexpr char kTransformer[] = "Transformer", kDictionary[] = "dictionary",
                      kCopying[] = "copying";
inline constexpr char kMinedPairs[] = "mined", kTruePairs[] = "true", kNoPairs[] = "-";

struct TranslationRow {
  std::string name, pairs;  // as above
  int64_t count = 0;        // of these pairs
  TranslationQuality quality;
};

struct TranslationResult {
  Mined mined;
  std::vector<TranslationRow> rows;   // Transformers, if trained, and dictionaries of both, copying
  std::vector<std::string> examples;  // "English = mined's | true's (reference)"
  int64_t held_out = 0;
  bool trained = false;  // whether there were steps to train Transformers in
  // What was found among pairs short enough for translators: the true ones, those mined before dual
  // cross-entropy and by it, and both whatever their margin.
  bool dual = false;
  MiningTruth short_truth;
  std::vector<MinedPair> before, again, before_mutual, again_mutual;

  // CHECKed to be there.
  const TranslationRow& Row(const std::string& name, const std::string& pairs) const;
};

absl::StatusOr<TranslationResult> StudyTranslation(const std::vector<TextPair>& pairs,
                                                   const std::string& language,
                                                   const TranslationStudyOptions& options);

void AddTranslation(const std::vector<TranslationResult>& results, Report* report);
// The claims, not made.
void NoTranslationClaims(const std::string& reason, Report* report);
std::string TranslationExamples(const std::vector<TranslationResult>& results);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MINING_TRANSLATION_STUDY_H_
