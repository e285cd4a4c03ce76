#include "experiments/all/results_page.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "experiments/all/claim_records.h"
#include "experiments/all/deterministic_columns.h"
#include "experiments/all/run_studies.h"
#include "experiments/report/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Claim Gain(const std::string& id, double ours) {
  Claim c = PaperClaim(id, "faster | than the other", "Paper, Table 1", "read");
  c.unit = "x";
  Published(&c, 1.6);
  Found(&c, Origin::kSimulated, ours);
  MetWithin(&c, 1.4, 1.8, "the model lacks <it>");
  return c;
}

// A study's folder, as its report writes it.
StudyOutcome WrittenStudy(const std::string& name, const std::vector<Claim>& claims) {
  ReportOptions options;
  options.name = name;
  options.command = absl::StrCat("tools/bazel run //experiments:", name, " -- --quick");
  options.seed = 3;
  Report report(options);
  report.AddConfig("steps", 5);
  Table t("t", "T");
  t.AddKey("scheme");
  t.AddColumn({"time", "time", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"bubble", "bubble", "", "%", Origin::kSimulated, 1});
  t.AddRow({Label("a,b"), Measured(2).WithSamples({1, 2, 3}), Simulated(25)});
  report.AddTable(std::move(t));
  for (const Claim& c : claims) report.AddClaim(c);
  const std::string folder = JoinPath(testing::TempDir(), name);
  EXPECT_THAT(report.WriteTo(folder), IsOk());
  StudyOutcome o;
  o.name = name;
  o.result = ReadResultFolder(folder).value();
  return o;
}

TEST(ResultFolderTest, ReadsWhatAReportWrites) {
  const StudyOutcome o = WrittenStudy("read_back", {Gain("p.gain", 1.5)});
  const ResultFolder& r = *o.result;
  EXPECT_EQ(r.experiment, "read_back");
  EXPECT_EQ(r.settings.at("steps"), "5");
  EXPECT_EQ(r.settings.at("seed"), "3");
  EXPECT_FALSE(r.environment.at("compiler").empty());
  ASSERT_EQ(r.records.size(), 2u);
  EXPECT_EQ(r.records[0].Key(), "t/scheme=a,b/time");
  EXPECT_THAT(r.records[0].samples, testing::ElementsAre(1, 2, 3));
  EXPECT_FALSE(r.records[0].deterministic);
  EXPECT_EQ(r.records[1].value, "25");
  EXPECT_TRUE(r.records[1].deterministic);
  EXPECT_EQ(r.claims.size(), 1u);
}

TEST(ResultFolderTest, NamesTheFile) {
  EXPECT_FALSE(IsResultFolder(testing::TempDir()));
  EXPECT_THAT(std::string(ReadResultFolder("/none").status().message()),
              HasSubstr("/none: is no result folder"));
  const StudyOutcome o = WrittenStudy("damaged", {});
  EXPECT_THAT(WriteFileAtomically(JoinPath(o.result->path, "records.csv"), "table\n"), IsOk());
  EXPECT_THAT(std::string(ReadResultFolder(o.result->path).status().message()),
              HasSubstr("damaged/records.csv:1: the header must have a column 'configuration'"));
}

TEST(ResultsPageTest, WhatIsMissedComesFirst) {
  StudyOutcome good = WrittenStudy("good_study", {Gain("p.good", 1.5)});
  good.reference = "equal";
  Claim depends = Gain("p.batch", 1.5);
  MetOverRange(&depends, "batch", {{"2", true}, {"4", false}}, "1.4x", "never");
  StudyOutcome bad = WrittenStudy("bad_study", {Gain("p.met", 1.5), Gain("p.bad", 9), depends});
  StudyOutcome failed;
  failed.name = "failed_study";
  failed.failure = "ended with exit code 1: no data";
  PublishedItem answered{"Paper", "Table 1", "read", {"p.bad", "p.nowhere"}, ""};
  PublishedItem left_out{"Paper", "Table 2", "read", {}, "needs 25 billion pairs"};
  const std::string page =
      ResultsPage({good, bad, failed}, {answered, left_out}, {true, {{"processor", "a | b"}}, {}});
  const size_t list = page.find("## What does not hold"), studies = page.find("## Studies");
  EXPECT_LT(list, studies);
  EXPECT_THAT(
      page.substr(list, studies - list),
      AllOf(HasSubstr("| `p.bad` | bad_study | faster \\| than the other | 1.6x | 9x; +462.5 "
                      "% | simulated | 1.4x to 1.8x | missed | the model lacks &lt;it&gt; |"),
            Not(HasSubstr("p.met")), Not(HasSubstr("p.good"))));
  EXPECT_LT(page.find("### bad_study"), page.find("### good_study"));
  EXPECT_LT(page.find("### failed_study"), page.find("### bad_study"));
  EXPECT_LT(page.find("`p.bad`"), page.find("`p.met`"));
  EXPECT_THAT(page, HasSubstr("3 studies, 1 of them failed; 2 claims met, 1 missed, 1 depend on "
                              "what a paper does not give, 0 not made."));
  EXPECT_THAT(page, HasSubstr("* `p.batch` depends on batch: holds for 2; turns at 4"));
  EXPECT_THAT(page.substr(list, studies - list),
              AllOf(HasSubstr("| `p.batch` | "), HasSubstr("holds for 2; turns at 4; never |")));
  EXPECT_THAT(page, HasSubstr("equal the committed ones in 1 of 1 studies"));
  EXPECT_THAT(page, HasSubstr("| 1.6x (read) | 9x | +462.5 % | simulated | 1.4x to 1.8x | "
                              "**missed** |"));
  EXPECT_THAT(page, HasSubstr("faster \\| than the other [Paper, Table 1]"));
  EXPECT_THAT(page, HasSubstr("* `p.bad` is missed: the model lacks &lt;it&gt;"));
  EXPECT_THAT(page, HasSubstr("tools/bazel run //experiments:bad_study -- --quick"));
  EXPECT_THAT(page, HasSubstr("| `p.nowhere` | no study that ran has recorded it | not run |"));
  EXPECT_THAT(page, HasSubstr("not covered: needs 25 billion pairs"));
  EXPECT_THAT(page, HasSubstr("| processor | a \\| b |"));
  EXPECT_THAT(ResultsPage({good}, {}, {}), AllOf(HasSubstr("does not hold throughout\n\nNone."),
                                                 HasSubstr("Nothing of what was claimed here.")));
  // What is committed stands for a study that did not run, and not beside one that did.
  ResultsPageOptions committed;
  committed.committed = RecordsOf("other_study", {Gain("p.other", 9), Gain("p.fine", 1.5)});
  for (const ClaimRecord& r : RecordsOf("good_study", {Gain("p.good", 9)})) {
    committed.committed.push_back(r);
  }
  EXPECT_THAT(
      ResultsPage({good}, {}, committed),
      AllOf(HasSubstr("| `p.other` | other_study | Paper, Table 1 | 1.6x | 9 x | committed |"),
            Not(HasSubstr("p.fine")), Not(HasSubstr("| `p.good` | good_study"))));
  good.reference.clear();
  good.not_compared = "no inputs";
  EXPECT_THAT(ResultsPage({good}, {}, {}), AllOf(HasSubstr("Not compared: good_study."),
                                                 HasSubstr("columns: not compared: no inputs")));
}

// A study without its inputs has nothing to compare; one that lost its tables has.
TEST(RunStudiesTest, WhatHasNoInputsIsNotCompared) {
  Claim left_out = OwnClaim("p.left_out", "something");
  NotMade(&left_out, "no inputs");
  ResultFolder r;
  r.deterministic = "table,configuration,metric,unit,value\n";
  r.claims = {left_out};
  EXPECT_EQ(WhyNothingToCompare(r), "no inputs");
  r.deterministic += "t,c,m,s,1\n";
  EXPECT_EQ(WhyNothingToCompare(r), "");
  r.deterministic = "table,configuration,metric,unit,value\n";
  r.claims.push_back(Gain("p.made", 1.5));
  EXPECT_EQ(WhyNothingToCompare(r), "");
  r.claims.clear();
  EXPECT_EQ(WhyNothingToCompare(r), "");
}

constexpr char kRecordsHead[] =
    "study,claim,source,tag,state,value,unit,published,accepted,reason,run,changed\n";

TEST(ClaimRecordsTest, AreWrittenReadAndReplaced) {
  const std::vector<ClaimRecord> made =
      RecordsOf("b", {Gain("p.gain", 1.5), OwnClaim("b.own", "ours")});
  const std::string of_b =
      "b,b.own,,,not made,,,,,,,\n"
      "b,p.gain,\"Paper, Table 1\",read,met,1.5,x,1.6x,1.4x to 1.8x,,,\n";
  EXPECT_EQ(ClaimRecordsCsv(made), absl::StrCat(kRecordsHead, of_b));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      std::vector<ClaimRecord> all,
      ParseClaimRecords(absl::StrCat(kRecordsHead, "a,a.x,,,met,,,,,,,\nb,b.old,,,met,,,,,,,\n",
                                     "b,p.gain,q,read,met,,,,,,,\nc,c.x,,,met,,,,,,,\n"),
                        "claims.csv"));
  Replace("b", made, &all);
  Replace("d", RecordsOf("d", {OwnClaim("d.x", "ours")}), &all);
  EXPECT_EQ(ClaimRecordsCsv(all), absl::StrCat(kRecordsHead, "a,a.x,,,met,,,,,,,\n", of_b,
                                               "c,c.x,,,met,,,,,,,\nd,d.x,,,not made,,,,,,,\n"));
  EXPECT_EQ(ClaimRecordsCsv(Select(all, "b")), ClaimRecordsCsv(made));
  const PublishedItem item{"Paper", "Table 1", "read", {"p.gain", "p.lost"}, ""};
  EXPECT_THAT(Unanswered({item}, all), testing::ElementsAre("Paper, Table 1: p.lost"));
}

// A full run answers for what --quick does not make, and for nothing else.
TEST(ClaimRecordsTest, QuickAndFullRunsKeepOutOfEachOthersWay) {
  const std::vector<ClaimRecord> quick =
      RecordsOf("b", {Gain("p.both", 1.5), OwnClaim("p.long", "ours")});
  EXPECT_EQ(ClaimRecordsCsv(ToCommit({}, quick, false)), ClaimRecordsCsv(quick));
  const std::vector<ClaimRecord> full =
      RecordsOf("b", {Gain("p.both", 1.9), Gain("p.long", 1.6)}, /*full=*/true);
  const std::vector<ClaimRecord> all = ToCommit(quick, full, true);
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].value, "1.5");
  EXPECT_EQ(all[0].run, "");
  EXPECT_EQ(all[1].value, "1.6");
  EXPECT_EQ(all[1].run, "full");
  EXPECT_THAT(ClaimDifferences(all, ToCommit(all, quick, false)), testing::IsEmpty());
  EXPECT_THAT(ClaimDifferences(all, ToCommit(all, full, true)), testing::IsEmpty());
  const std::vector<ClaimRecord> later =
      RecordsOf("b", {Gain("p.both", 1.9), Gain("p.long", 1.9)}, /*full=*/true);
  EXPECT_THAT(ClaimDifferences(all, ToCommit(all, later, true)),
              testing::ElementsAre(AllOf(HasSubstr("claim p.long: met -> missed"),
                                         HasSubstr("//experiments:all -- --only=b --update"))));
}

TEST(ClaimRecordsTest, ATurnIsNoticedNotedAndExplained) {
  const std::vector<ClaimRecord> committed = RecordsOf("b", {Gain("p.gain", 1.5)});
  EXPECT_THAT(ClaimDifferences(committed, committed), testing::IsEmpty());
  EXPECT_THAT(ClaimDifferences(committed, RecordsOf("b", {Gain("p.gain", 1.6)})),
              testing::ElementsAre(HasSubstr("claim p.gain: value 1.5 x -> 1.6 x")));
  EXPECT_THAT(ClaimDifferences(committed, {}),
              testing::ElementsAre(HasSubstr("claim p.gain: is no longer recorded")));
  std::vector<ClaimRecord> missed = RecordsOf("b", {Gain("p.gain", 1.9)});
  EXPECT_THAT(ClaimDifferences(committed, missed),
              testing::ElementsAre(AllOf(
                  HasSubstr("study b, claim p.gain: met -> missed: commit claims.csv"),
                  HasSubstr("with \"`p.gain` turn 1: met -> missed: WHY\" in CHANGELOG.md"))));
  EXPECT_THAT(ClaimDifferences(missed, committed),
              testing::ElementsAre(HasSubstr("`p.gain` turn 1: missed -> met: WHY")));
  NoteTurns(committed, &missed);
  EXPECT_EQ(missed[0].changed, "turn 1: met -> missed");
  EXPECT_EQ(missed[0].reason, "the model lacks <it>");
  for (const char* silent :
       {"", "`p.gain` missed -> met: because", "`p.gain` turn 1: met -> missed:\n"}) {
    EXPECT_THAT(Unexplained(missed, silent),
                testing::ElementsAre(HasSubstr("CHANGELOG.md must say")));
  }
  EXPECT_THAT(Unexplained(missed, "* `p.gain` turn 1: met\n  -> missed: links cost more.\n"),
              testing::IsEmpty());
  std::vector<ClaimRecord> again = RecordsOf("b", {Gain("p.gain", 1.9)});
  NoteTurns(missed, &again);
  EXPECT_EQ(again[0].changed, "turn 1: met -> missed");  // until the next turn
  // There and back: what explained the first turn does not explain the third.
  std::vector<ClaimRecord> back = RecordsOf("b", {Gain("p.gain", 1.5)});
  NoteTurns(missed, &back);
  EXPECT_EQ(back[0].changed, "turn 2: missed -> met");
  NoteTurns(back, &again);
  EXPECT_EQ(again[0].changed, "turn 3: met -> missed");
  EXPECT_THAT(Unexplained(again, "* `p.gain` turn 1: met -> missed: links cost more.\n"),
              testing::SizeIs(1));
}

TEST(RunStudiesTest, CountsLinesThatDiffer) {
  EXPECT_EQ(CompareLines("a\nb\n", "a\nb\n"), "equal");
  EXPECT_EQ(CompareLines("a\nb\nc\n", "a\nx\nc\n"),
            "1 lines differ, the first is 2: x, committed: b");
  EXPECT_EQ(CompareLines("a\n", "a\nb\n"), "2 lines differ, the first is 2: b, committed: ");
  EXPECT_EQ(CompareLines("a\n", "b\n", "A has"), "1 lines differ, the first is 1: b, A has: a");
}

TEST(RunStudiesTest, AStudyThatFailsIsAnOutcome) {
  RunStudiesOptions options;
  options.out = JoinPath(testing::TempDir(), "outcomes");
  EXPECT_THAT(RunStudy({"x", {"/no/such/program"}}, options).failure, HasSubstr("does not run"));
  EXPECT_THAT(RunStudy({"x", {"/bin/false"}}, options).failure, HasSubstr("exit code 1"));
  const StudyOutcome silent = RunStudy({"x", {"/bin/true"}}, options);
  EXPECT_EQ(silent.failure, "wrote no result");
  EXPECT_FALSE(silent.result.has_value());
}

TEST(RunStudiesTest, SaysALineNowAndThen) {
  const absl::Time begin = absl::FromUnixSeconds(0);
  const auto at = [&](int seconds) { return begin + absl::Seconds(seconds); };
  SomeLines lines(absl::Seconds(30), begin);
  EXPECT_EQ(lines.Add("one\ntwo\nth", at(10)), "");
  EXPECT_EQ(lines.Add("ree\nfour", at(31)), "three");
  EXPECT_EQ(lines.Add("\n", at(60)), "");
  EXPECT_EQ(lines.Add("", at(61)), "four");
  EXPECT_EQ(lines.Add("\n\n", at(100)), "");  // nothing new
}

TEST(RunStudiesTest, StudiesAreThisProgramButTheQuickstart) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto programs, StudyPrograms({"quickstart", "travel"}));
  ASSERT_EQ(programs.size(), 2u);
  EXPECT_EQ(programs[0].name, "quickstart");
  EXPECT_THAT(programs[0].command, ElementsAre(EndsWith("/quickstart")));
  EXPECT_EQ(programs[1].name, "travel");
  EXPECT_THAT(programs[1].command, ElementsAre(StartsWith("/"), "travel"));
}

TEST(CoverageTest, EveryItemIsAnsweredOrSaysWhyNot) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<PublishedItem> items, PublishedItems());
  EXPECT_GE(items.size(), 30u);
  std::set<std::string> seen;
  for (const PublishedItem& item : items) {
    EXPECT_TRUE(seen.insert(item.paper + item.what).second) << item.what;
    EXPECT_NE(item.claims.empty(), item.not_covered.empty()) << item.what;
  }
  const auto message = [](const std::string& item) {
    return std::string(
        ParsePublishedItems(
            R"({"items": [{"paper": "p", "what": "w", "tag": "read")" + item + "}]}", "f.json")
            .status()
            .message());
  };
  EXPECT_THAT(message(""), HasSubstr("f.json: items[0].claims: an item has claims, or"));
  EXPECT_THAT(message(R"(, "claims": [])"), HasSubstr("must not be empty"));
  EXPECT_THAT(message(R"(, "claims": ["a"], "not_covered": "b")"), Not(testing::IsEmpty()));
  EXPECT_EQ(message(R"(, "claims": ["a"])"), "");
}

}  // namespace
}  // namespace pipelab
