#include "experiments/mining/mining_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace pipelab {
namespace {

constexpr double kLeastPrecision = 0.85, kMostFall = 0.01, kMostNoiseLoss = 0.10, kMostFalse = 0.02;

Cell HeldOut(const Mining& mining, bool last) {
  if (!last) return Missing("only what the last iteration leaves is tested");
  return mining.held_out > 0 ? Measured(mining.held_out) : Missing("nothing to test");
}

Table IterationTable(const std::vector<Mined>& all) {
  Table t("iterations", "What is mined, by iteration");
  for (const char* key : {"language", "pool", "iteration"}) t.AddKey(key);
  t.AddColumn({"sentences", "English sentences", "", "", Origin::kComputed, 0});
  t.AddColumn({"partners", "with a partner", "", "", Origin::kComputed, 0});
  t.AddColumn({"mined", "pairs mined", "", "", Origin::kMeasured, 0});
  t.AddColumn({"estimate", "precision estimated without truth", "", "", Origin::kMeasured, 3});
  t.AddColumn({"held_out", "how often what never taught is mined, over how often the rest is", "",
               "", Origin::kMeasured, 3});
  AddScoreColumns(&t);
  for (const Mined& m : all) {
    const std::vector<MiningScore> scores = m.Scores();
    for (size_t i = 0; i < scores.size(); ++i) {
      const Threshold& threshold = m.mining.iterations[i].threshold;
      AddScore(&t,
               {Label(m.language), Label(m.pool), Label(static_cast<double>(i + 1)),
                Value(Origin::kComputed, static_cast<double>(m.task.pool.source.size())),
                Value(Origin::kComputed, scores[i].of), Measured(scores[i].mined),
                threshold.found ? Measured(threshold.precision)
                                : Missing("no margin reaches the wanted precision"),
                HeldOut(m.mining, i + 1 == scores.size())},
               scores[i]);
    }
  }
  return t;
}

Table BaselineTable(const std::vector<Mined>& all) {
  Table t("baseline", "With the threshold that the truth likes best, which no method may use");
  for (const char* key : {"language", "pool", "score"}) t.AddKey(key);
  AddScoreColumns(&t);
  for (const Mined& m : all) {
    if (m.task.truth.empty()) continue;
    const auto add = [&](const char* score, const std::vector<MinedPair>& pairs) {
      AddScore(&t, {Label(m.language), Label(m.pool), Label(score)},
               BestScore(pairs, m.task.truth));
    };
    add("character grams alone", m.mining.grams_alone);
    if (!m.mining.iterations.empty()) add("word tables", m.mining.iterations.back().mutual);
  }
  return t;
}

double F1Bar(const std::string& language) {
  if (language == "ru") return 0.60;
  return language == "cs" ? 0.70 : 0.80;
}

template <typename Get>
MiningFigures MinedFigures(const std::vector<Mined>& all, const char* pool, const Get& get) {
  MiningFigures figures;
  for (const Mined& m : all) {
    if (m.pool == pool) figures.of_language.emplace_back(m.language, get(m));
  }
  return figures;
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

constexpr Wanted kF1 = {"mining.f1", "F1 of mined pairs by language"};
constexpr Wanted kPrecision = {"mining.precision",
                               "precision at the threshold that is chosen without truth"};
constexpr Wanted kFall = {"mining.steady", "largest fall of F1 from one iteration to the next"};
constexpr Wanted kNoise = {"mining.noise", "F1 lost to sentences without a partner"};
constexpr Wanted kNothing = {"mining.nothing", "share mined from a pool without a true pair"};

}  // namespace

double MiningFigures::Least() const {
  double least = of_language.empty() ? 1 : of_language[0].second;
  for (const auto& [language, value] : of_language) least = std::min(least, value);
  return least;
}

double MiningFigures::Most() const {
  double most = 0;
  for (const auto& [language, value] : of_language) most = std::max(most, value);
  return most;
}

std::string MiningFigures::Text() const {
  return absl::StrJoin(of_language, ", ", [](std::string* text, const auto& of) {
    absl::StrAppendFormat(text, "%s %.3f", of.first, of.second);
  });
}

void AddClaim(Report* report, const Wanted& wanted, double value, const std::string& text, bool met,
              const std::string& accepted, const std::string& reason) {
  Claim c = OwnClaim(wanted.id, wanted.text);
  Found(&c, Origin::kMeasured, value, text);
  MetIf(&c, met, accepted, reason);
  report->AddClaim(std::move(c));
}

void AddNotMade(const std::vector<Wanted>& all, const std::string& reason, Report* report) {
  for (const Wanted& wanted : all) {
    Claim c = OwnClaim(wanted.id, wanted.text);
    NotMade(&c, reason);
    report->AddClaim(std::move(c));
  }
}

void AddScoreColumns(Table* t) {
  for (const char* share : {"precision", "recall", "f1"}) {
    t->AddColumn({share, share, "", "", Origin::kMeasured, 3});
  }
}

void AddScore(Table* t, std::vector<Cell> row, const MiningScore& s) {
  for (const double share : {s.precision(), s.recall(), s.f1()}) row.push_back(Measured(share));
  t->AddRow(std::move(row));
}

void AddMiningTables(const std::vector<Mined>& all, Report* report) {
  report->AddTable(IterationTable(all));
  report->AddTable(BaselineTable(all));
}

void AddMiningClaims(const std::vector<Mined>& all, Report* report) {
  const auto f1_of = [](const Mined& m) { return m.Last().f1(); };
  const auto precision_of = [](const Mined& m) { return m.Last().precision(); };
  const auto above_bar = [&](const Mined& m) { return f1_of(m) - F1Bar(m.language); };
  const auto lost = [&](const Mined& noisy) {
    for (const Mined& m : all) {
      if (m.pool == "manual" && m.language == noisy.language) return f1_of(m) - f1_of(noisy);
    }
    return 1.0;
  };
  const MiningFigures f1 = MinedFigures(all, "manual", f1_of),
                      fall = MinedFigures(all, "manual", Fall),
                      precision = MinedFigures(all, "manual", precision_of),
                      wrong = MinedFigures(all, "no pair", FalseShare),
                      loss = MinedFigures(all, "noise", lost);
  AddClaim(report, kF1, f1.Least(), f1.Text(), MinedFigures(all, "manual", above_bar).Least() >= 0,
           "0.80 (de, fr), 0.70 (cs), 0.60 (ru)",
           "where languages share few grams the first pairs are too poor to learn from: no margin "
           "reaches the precision, and nothing is mined");
  AddClaim(report, kPrecision, precision.Least(), precision.Text(),
           precision.Least() >= kLeastPrecision, "0.85 at least",
           "where nothing is mined the precision counts as 0");
  AddClaim(report, kFall, fall.Most(), fall.Text(), fall.Most() <= kMostFall, "0.01 at most",
           "each iteration chooses its threshold anew, and what is near it comes and goes");
  AddClaim(report, kNothing, wrong.Most(), wrong.Text(), wrong.Most() < kMostFalse,
           "less than 0.02", "chance likeness of grams teaches tables that confirm it");
  if (loss.of_language.empty()) return AddNotMade({kNoise}, "no language had noise", report);
  AddClaim(report, kNoise, loss.Most(), loss.Text(), loss.Most() <= kMostNoiseLoss, "0.10 at most",
           "among so many sentences without a partner no margin reaches the wanted precision, or "
           "sentences that taught nothing are mined too seldom, and nothing is mined");
}

void NoMiningClaims(const std::string& reason, Report* report) {
  AddNotMade({kF1, kPrecision, kFall, kNoise, kNothing}, reason, report);
}

std::string MiningExamples(const std::vector<Mined>& all) {
  constexpr int kOfEach = 10;
  std::string page = "# Mined pairs\n\nThe texts are the manual's (CC-BY-SA-3.0).\n";
  for (const Mined& m : all) {
    if (m.pool != "manual") continue;
    for (const bool right : {true, false}) {
      absl::StrAppend(&page, "\n## ", m.language, right ? ", right" : ", wrong", "\n\n");
      int shown = 0;
      for (const MinedPair& p : m.mining.pairs) {
        if ((Judge({p}, m.task.truth).right > 0) != right || shown++ >= kOfEach) continue;
        absl::StrAppendFormat(&page, "* margin %.2f\n  * %s\n  * %s\n", p.margin,
                              m.task.pool.source[p.x], m.task.pool.target[p.y]);
      }
    }
  }
  return page;
}

}  // namespace pipelab
