// tools/bazel run //experiments:corpus_mining
//
// Pairs of sentences mined without labels from the manuals of a desktop, beside the withheld truth.
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "experiments/mining/judge.h"
#include "experiments/report/report.h"
#include "experiments/study_main.h"
#include "models/data/manuals.h"
#include "models/data/mining_pool.h"
#include "models/data/package_cache.h"
#include "models/mining/mine.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::vector<std::string>, languages, std::vector<std::string>({"de", "fr", "cs", "ru"}),
          "locales of the manual that are mined with English");
ABSL_FLAG(std::vector<std::string>, noise_languages, std::vector<std::string>({"de", "fr"}),
          "of them, those that are mined again with --wrong");
ABSL_FLAG(double, wrong, 3, "sentences without a partner for each with one, in the noise study");
ABSL_FLAG(uint64_t, seed, 1, "of the split and the order of sentences");
ABSL_FLAG(int, threads, 2, "that score; figures are the same for any number");

namespace pipelab {
namespace {

constexpr double kLeastPrecision = 0.85, kMostFall = 0.01, kMostNoiseLoss = 0.10, kMostFalse = 0.02;

struct Mined {
  std::string language, pool;
  MiningTask task;
  Mining mining;

  std::vector<MiningScore> Scores() const {
    std::vector<MiningScore> scores;
    for (const MineIteration& i : mining.iterations) scores.push_back(Judge(i.pairs, task.truth));
    return scores;
  }
  MiningScore Last() const { return Judge(mining.pairs, task.truth); }
};

absl::StatusOr<Mined> MineLanguage(const ParallelText& text, const std::string& language,
                                   const std::string& pool, const MiningTaskOptions& options) {
  std::cerr << language << ", " << pool << std::endl;
  Mined mined;
  mined.language = language;
  mined.pool = pool;
  mined.task = MakeMiningTask(text, options);
  MineOptions how;
  how.threads = std::max(1, absl::GetFlag(FLAGS_threads));
  PIPELAB_ASSIGN_OR_RETURN(mined.mining, Mine(mined.task.pool.source, mined.task.pool.target, how));
  return mined;
}

void AddColumns(Table* t) {
  for (const char* share : {"precision", "recall", "f1"}) {
    t->AddColumn({share, share, "", "", Origin::kMeasured, 3});
  }
}

void AddScore(Table* t, std::vector<Cell> row, const MiningScore& s) {
  for (const double share : {s.precision(), s.recall(), s.f1()}) row.push_back(Measured(share));
  t->AddRow(std::move(row));
}

Table IterationTable(const std::vector<Mined>& all) {
  Table t("iterations", "What is mined, by iteration");
  for (const char* key : {"language", "pool", "iteration"}) t.AddKey(key);
  t.AddColumn({"sentences", "English sentences", "", "", Origin::kComputed, 0});
  t.AddColumn({"partners", "with a partner", "", "", Origin::kComputed, 0});
  t.AddColumn({"mined", "pairs mined", "", "", Origin::kMeasured, 0});
  t.AddColumn({"estimate", "precision estimated without truth", "", "", Origin::kMeasured, 3});
  AddColumns(&t);
  for (const Mined& m : all) {
    const std::vector<MiningScore> scores = m.Scores();
    for (size_t i = 0; i < scores.size(); ++i) {
      const Threshold& threshold = m.mining.iterations[i].threshold;
      AddScore(&t,
               {Label(m.language), Label(m.pool), Label(static_cast<double>(i + 1)),
                Value(Origin::kComputed, static_cast<double>(m.task.pool.source.size())),
                Value(Origin::kComputed, scores[i].of), Measured(scores[i].mined),
                threshold.found ? Measured(threshold.precision) : Missing("nothing is mined")},
               scores[i]);
    }
  }
  return t;
}

Table BaselineTable(const std::vector<Mined>& all) {
  Table t("baseline", "Character grams alone, with the threshold that the truth likes best");
  for (const char* key : {"language", "pool"}) t.AddKey(key);
  AddColumns(&t);
  for (const Mined& m : all) {
    if (m.task.truth.empty()) continue;
    AddScore(&t, {Label(m.language), Label(m.pool)}, BestScore(m.mining.grams_alone, m.task.truth));
  }
  return t;
}

double F1Bar(const std::string& language) {
  if (language == "ru") return 0.60;
  return language == "cs" ? 0.70 : 0.80;
}

// "de 0.853, fr 0.881".
template <typename Get>
std::string Each(const std::vector<const Mined*>& all, const Get& get) {
  std::string text;
  for (const Mined* m : all) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", m->language,
                    absl::StrFormat(" %.3f", get(*m)));
  }
  return text;
}

std::vector<const Mined*> Of(const std::vector<Mined>& all, const std::string& pool) {
  std::vector<const Mined*> some;
  for (const Mined& m : all) {
    if (m.pool == pool) some.push_back(&m);
  }
  return some;
}

template <typename Get>
double Least(const std::vector<const Mined*>& all, const Get& get) {
  double least = 1;
  for (const Mined* m : all) least = std::min(least, get(*m));
  return least;
}

// The largest fall of F1 from one iteration to the next.
double Fall(const Mined& m) {
  double fall = 0;
  const std::vector<MiningScore> scores = m.Scores();
  for (size_t i = 1; i < scores.size(); ++i) {
    fall = std::max(fall, scores[i - 1].f1() - scores[i].f1());
  }
  return fall;
}

double FalseShare(const Mined& m) {
  return static_cast<double>(m.mining.pairs.size()) /
         static_cast<double>(std::max<size_t>(1, m.task.pool.source.size()));
}

struct Wanted {
  const char *id, *text;
};
constexpr Wanted kF1 = {"mining.f1", "F1 of mined pairs by language"};
constexpr Wanted kPrecision = {"mining.precision",
                               "precision at the threshold that is chosen without truth"};
constexpr Wanted kFall = {"mining.steady", "largest fall of F1 from one iteration to the next"};
constexpr Wanted kNoise = {"mining.noise", "F1 lost to sentences without a partner"};
constexpr Wanted kNothing = {"mining.nothing", "share mined from a pool without a true pair"};

void AddClaim(Report* report, const Wanted& wanted, double value, const std::string& text, bool met,
              const std::string& accepted, const std::string& reason) {
  Claim c = OwnClaim(wanted.id, wanted.text);
  Found(&c, Origin::kMeasured, value, text);
  MetIf(&c, met, accepted, reason);
  report->AddClaim(std::move(c));
}

void AddClaims(const std::vector<Mined>& all, Report* report) {
  const auto f1 = [](const Mined& m) { return m.Last().f1(); };
  const auto precision = [](const Mined& m) { return m.Last().precision(); };
  const auto above = [&](const Mined& m) { return f1(m) - F1Bar(m.language); };
  const auto clean = Of(all, "manual"), noisy = Of(all, "noise"), none = Of(all, "no pair");
  AddClaim(report, kF1, Least(clean, f1), Each(clean, f1), Least(clean, above) >= 0,
           "0.80 (de, fr), 0.70 (cs), 0.60 (ru)",
           "where languages share few grams the first pairs are too poor to learn from: no margin "
           "reaches the precision, and nothing is mined");
  AddClaim(report, kPrecision, Least(clean, precision), Each(clean, precision),
           Least(clean, precision) >= kLeastPrecision, "0.85 at least",
           "where nothing is mined the precision counts as 0");
  double fall = 0, false_share = 0, loss = 0;
  for (const Mined* m : clean) fall = std::max(fall, Fall(*m));
  AddClaim(report, kFall, fall, Each(clean, Fall), fall <= kMostFall, "0.01 at most",
           "each iteration chooses its threshold anew, and what is near it comes and goes");
  for (const Mined* m : none) false_share = std::max(false_share, FalseShare(*m));
  AddClaim(report, kNothing, false_share, Each(none, FalseShare), false_share < kMostFalse,
           "less than 0.02", "chance likeness of grams teaches tables that confirm it");
  const auto lost = [&](const Mined& m) {
    for (const Mined* c : clean) {
      if (c->language == m.language) return f1(*c) - f1(m);
    }
    return 1.0;
  };
  for (const Mined* m : noisy) loss = std::max(loss, lost(*m));
  AddClaim(
      report, kNoise, loss, Each(noisy, lost), !noisy.empty() && loss <= kMostNoiseLoss,
      "0.10 at most",
      "no margin reaches the precision among so many sentences without a partner, and nothing is "
      "mined");
}

// For people: the first pairs of each language, right and wrong.
std::string Examples(const std::vector<Mined>& all) {
  constexpr int kOfEach = 10;
  std::string page = "# Mined pairs\n\nThe texts are the manual's (CC-BY-SA-3.0).\n";
  for (const Mined* m : Of(all, "manual")) {
    for (const bool right : {true, false}) {
      absl::StrAppend(&page, "\n## ", m->language, right ? ", right" : ", wrong", "\n\n");
      int shown = 0;
      for (const MinedPair& p : m->mining.pairs) {
        if ((Judge({p}, m->task.truth).right > 0) != right || shown++ >= kOfEach) continue;
        absl::StrAppendFormat(&page, "* margin %.2f\n  * %s\n  * %s\n", p.margin,
                              m->task.pool.source[p.x], m->task.pool.target[p.y]);
      }
    }
  }
  return page;
}

absl::Status Run(StudyRun* study) {
  PIPELAB_RETURN_IF_ERROR(study->Begin());
  const absl::StatusOr<ManualFolders> folders = FetchManuals(DefaultDataCache());
  if (!folders.ok()) {
    for (const Wanted& wanted : {kF1, kPrecision, kFall, kNoise, kNothing}) {
      Claim c = OwnClaim(wanted.id, wanted.text);
      NotMade(&c, absl::StrCat("the manuals are not here: ", folders.status().message()));
      study->report().AddClaim(std::move(c));
    }
    return absl::OkStatus();
  }
  const std::vector<std::string> noise = absl::GetFlag(FLAGS_noise_languages);
  std::vector<Mined> all;
  for (const std::string& language : absl::GetFlag(FLAGS_languages)) {
    PIPELAB_ASSIGN_OR_RETURN(const ParallelText text, LoadManuals(*folders, language));
    MiningTaskOptions options;
    options.seed = absl::GetFlag(FLAGS_seed);
    PIPELAB_ASSIGN_OR_RETURN(all.emplace_back(), MineLanguage(text, language, "manual", options));
    if (std::count(noise.begin(), noise.end(), language) > 0) {
      options.wrong = absl::GetFlag(FLAGS_wrong);
      PIPELAB_ASSIGN_OR_RETURN(all.emplace_back(), MineLanguage(text, language, "noise", options));
    }
    options.wrong = 0;
    options.with_pairs = false;
    PIPELAB_ASSIGN_OR_RETURN(all.emplace_back(), MineLanguage(text, language, "no pair", options));
  }
  study->report().AddTable(IterationTable(all));
  study->report().AddTable(BaselineTable(all));
  AddClaims(all, &study->report());
  PIPELAB_RETURN_IF_ERROR(MakeDirectories(study->out()));
  return WriteFileAtomically(JoinPath(study->out(), "examples.md"), Examples(all));
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  pipelab::StudyInfo info;
  info.name = "corpus_mining";
  info.title = "Pairs of sentences mined without labels";
  info.summary = "Pairs of sentences mined without labels, beside the withheld truth.";
  info.description =
      "Paragraphs of a desktop's manual in English and another language. Half keep their partner, "
      "half lose it. No example of a pair is given (docs/mining.md); examples.md beside this "
      "report "
      "has pairs to read.";
  info.quick = {{"noise_languages", "fr"}};
  info.quick_leaves_out = "the noise study of one language of two";
  return pipelab::RunStudyMain(argc, argv, info, pipelab::Run);
}
