// tools/bazel run //experiments:corpus_mining
//
// Pairs of sentences mined without labels from the manuals of a desktop, beside the withheld truth;
// and what translators learn from pairs that are mined from strings of programs.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "experiments/flags/option_checks.h"
#include "experiments/mining/mined.h"
#include "experiments/mining/mining_report.h"
#include "experiments/mining/translation_study.h"
#include "experiments/report/report.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/study/study_main.h"
#include "models/data/catalogues.h"
#include "models/data/manuals.h"
#include "models/data/mining_pool.h"
#include "models/data/package_cache.h"
#include "models/data/subwords.h"
#include "models/mining/mine.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

STUDY_FLAG(std::vector<std::string>, languages, std::vector<std::string>({"de", "fr", "cs", "ru"}),
           "locales of the manual that are mined with English");
STUDY_FLAG(std::vector<std::string>, noise_languages, std::vector<std::string>({"de", "fr"}),
           "of them, those that are mined again with --wrong");
STUDY_FLAG(std::vector<std::string>, translation_languages,
           std::vector<std::string>({"fr", "de", "ro"}),
           "locales of the catalogues that translators are trained for");
STUDY_FLAG(std::vector<std::string>, dual_languages, std::vector<std::string>({"ro"}),
           "of them, those that are mined again by dual cross-entropy");
STUDY_FLAG(bool, dual_fill, false,
           "whether these score while the training of the other direction waits (docs/filling.md)");
STUDY_FLAG(double, wrong, 3, "sentences without a partner for each with one, in the noise study");
STUDY_FLAG(int, merges, TranslationStudyOptions().merges,
           "merges that make pieces of words of characters, for translators");
STUDY_FLAG(int64_t, pieces, TranslatorOptions().most_pieces,
           "of the longest strings that translators learn and say");
STUDY_FLAG(std::string, scheme, TranslatorOptions().scheme,
           "scheme that trains translators, on two devices");
STUDY_FLAG(int64_t, hidden, TranslatorOptions().hidden,
           "width of translators; their feed-forward parts are 4 times as wide");
STUDY_FLAG(double, dropout, TranslatorOptions().dropout, "dropout rate of translators");
STUDY_FLAG(int64_t, steps, TranslatorOptions().steps,
           "training steps of translators, of 64 pairs; 0: none is trained");
STUDY_FLAG(float, learning_rate, TranslatorOptions().learning_rate,
           "of translators, at the end of the warm-up");
STUDY_FLAG(uint64_t, seed, TranslatorOptions().seed,
           "of the split, the order of sentences, and weights");
STUDY_FLAG(int, threads, 2, "that score; figures are the same for any number");

bool Has(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

MineOptions MineFromFlags() {
  MineOptions options;
  options.threads = std::max(1, absl::GetFlag(FLAGS_threads));
  return options;
}

TranslationStudyOptions TranslationFromFlags() {
  TranslationStudyOptions options;
  options.mine = MineFromFlags();
  options.task.seed = absl::GetFlag(FLAGS_seed);
  options.merges = absl::GetFlag(FLAGS_merges);
  TranslatorOptions& translator = options.translator;
  translator.hidden = absl::GetFlag(FLAGS_hidden);
  translator.feed_forward = 4 * translator.hidden;
  translator.dropout = absl::GetFlag(FLAGS_dropout);
  translator.most_pieces = absl::GetFlag(FLAGS_pieces);
  translator.steps = absl::GetFlag(FLAGS_steps);
  translator.scheme = absl::GetFlag(FLAGS_scheme);
  translator.learning_rate = absl::GetFlag(FLAGS_learning_rate);
  translator.seed = absl::GetFlag(FLAGS_seed);
  return options;
}

// One language's manual: its pool, with noise of two kinds where it is asked for, and without
// pairs.
absl::Status MineManual(const ManualFolders& folders, const std::string& language,
                        std::vector<Mined>* all) {
  const auto mine = [&](const char* pool, const ParallelText& text,
                        const MiningTaskOptions& options) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(
        all->emplace_back(),
        MineTask(language, pool, MakeMiningTask(text, options), MineFromFlags()));
    return absl::OkStatus();
  };
  PIPELAB_ASSIGN_OR_RETURN(const ParallelText text, LoadManuals(folders, language));
  MiningTaskOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  PIPELAB_RETURN_IF_ERROR(mine("manual", text, options));
  if (Has(absl::GetFlag(FLAGS_noise_languages), language)) {
    options.wrong = absl::GetFlag(FLAGS_wrong);
    PIPELAB_RETURN_IF_ERROR(mine("noise", text, options));
    PIPELAB_ASSIGN_OR_RETURN(const ParallelText halves,
                             LoadManuals(folders, language, LoneText::kHalves));
    PIPELAB_RETURN_IF_ERROR(mine("noise, halves", halves, options));
  }
  options.wrong = 0;
  options.with_pairs = false;
  return mine("no pair", text, options);
}

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--pieces", absl::GetFlag(FLAGS_pieces), 1, 1 << 10));
  PIPELAB_RETURN_IF_ERROR(
      CheckRange("--merges", absl::GetFlag(FLAGS_merges), 0, Subwords::kMostMerges));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--steps", absl::GetFlag(FLAGS_steps), 0, 1 << 20));
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  Report& report = study->report();
  const absl::StatusOr<ManualFolders> folders = FetchManuals(DefaultDataCache());
  if (!folders.ok()) {
    const std::string reason = absl::StrCat("the texts are not here: ", folders.status().message());
    NoMiningClaims(reason, &report);
    NoTranslationClaims(reason, &report);
    return absl::OkStatus();
  }
  std::vector<Mined> all;
  for (const std::string& language : absl::GetFlag(FLAGS_languages)) {
    PIPELAB_RETURN_IF_ERROR(MineManual(*folders, language, &all));
  }
  std::vector<TranslationResult> translated;
  for (const std::string& language : absl::GetFlag(FLAGS_translation_languages)) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextPair> pairs,
                             LoadCatalogues(folders->AllCatalogues(), language));
    TranslationStudyOptions options = TranslationFromFlags();
    options.dual = Has(absl::GetFlag(FLAGS_dual_languages), language);
    options.dual_fill = absl::GetFlag(FLAGS_dual_fill);
    PIPELAB_ASSIGN_OR_RETURN(translated.emplace_back(), StudyTranslation(pairs, language, options));
    all.push_back(translated.back().mined);
  }
  AddMiningTables(all, &report);
  AddMiningClaims(all, &report);
  AddTranslation(translated, &report);
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(study->out()));
  return WriteFileAtomically(JoinPath(study->out(), "examples.md"),
                             MiningExamples(all) + TranslationExamples(translated));
}

}  // namespace

int RunCorpusMiningStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  StudyInfo info;
  info.name = "corpus_mining";
  info.title = "Pairs of sentences mined without labels";
  info.summary = "Pairs of sentences mined without labels, beside the withheld truth.";
  info.description =
      "Paragraphs of a desktop's manual, and strings of programs, in English and another language. "
      "Half keep their partner, half lose it. No example of a pair is given (docs/mining.md). "
      "Translators are trained on what is mined, and on the true pairs. examples.md beside this "
      "report has pairs and translations to read.";
  info.quick = {{"languages", "fr"},
                {"noise_languages", ""},
                {"translation_languages", ""},
                {"dual_languages", ""}};
  info.quick_leaves_out = "all but the French manual: other languages, noise and translators";
  return RunStudyMain(argc, argv, info, Run);
}

}  // namespace pipelab
