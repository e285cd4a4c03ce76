#include "experiments/report/report.h"

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "experiments/report/environment.h"
#include "experiments/report/sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, std::string> FilesOf(const Report& report) {
  const auto files = report.Files();
  EXPECT_TRUE(files.ok()) << files.status();
  if (!files.ok()) return {};
  return {files->begin(), files->end()};
}

// The first tag that is not closed in order, and ids that occur twice; empty when all is well.
std::string MarkupMistake(const std::string& text) {
  static const std::set<std::string> kVoid = {"meta", "!DOCTYPE"};
  std::vector<std::string> open;
  std::set<std::string> ids;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    const size_t end = text.find('>', at);
    if (end == std::string::npos) return absl::StrCat("no > after byte ", at);
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1))
        return absl::StrCat("</", tag.substr(1), "> at byte ", at);
      open.pop_back();
    } else if (tag.back() != '/' && kVoid.count(name) == 0) {
      open.push_back(name);
    }
    const size_t id = tag.find(" id=\"");
    if (id != std::string::npos) {
      const std::string value = tag.substr(id + 5, tag.find('"', id + 5) - id - 5);
      if (!ids.insert(value).second) return absl::StrCat("id ", value, " twice");
    }
    // Scripts and styles hold no tags.
    if (name == "script" || name == "style") at = text.find(absl::StrCat("</", name), end) - 1;
  }
  return open.empty() ? "" : absl::StrCat("<", open.back(), "> is not closed");
}

TEST(MarkupMistakeTest, FindsMistakes) {
  EXPECT_EQ(MarkupMistake("<p><b id=\"x\">a</b><i/></p>"), "");
  EXPECT_THAT(MarkupMistake("<p><b>a</p></b>"), HasSubstr("</p>"));
  EXPECT_THAT(MarkupMistake("<p>"), HasSubstr("not closed"));
  EXPECT_THAT(MarkupMistake("<p id=\"x\"></p><p id=\"x\"></p>"), HasSubstr("twice"));
}

TEST(ReportTest, WritesEveryFile) {
  std::vector<std::string> names;
  for (const auto& file : FilesOf(SampleReport())) names.push_back(file.first);
  EXPECT_THAT(names,
              testing::ElementsAre("claims.json", "config.json", "curves_training_loss.csv",
                                   "curves_training_loss.svg", "deterministic.csv", "env.json",
                                   "memory_gpipe_simulated.svg", "records.csv", "report.html",
                                   "report.md", "run.json", "samples.csv", "schedule_1f1b.csv",
                                   "schedule_gpipe.csv", "table_schemes.csv",
                                   "timeline_1f1b_measured.svg", "timeline_1f1b_simulated.svg",
                                   "timeline_gpipe_simulated.svg", "trace_1f1b_measured.json",
                                   "trace_1f1b_simulated.json", "trace_gpipe_simulated.json"));
}

TEST(ReportTest, ClaimsComeFirstAndAreNoResults) {
  Report report = SampleReport();
  const auto before = FilesOf(report);
  Claim c = OwnClaim("sample.second", "<met>");
  Found(&c, Origin::kSimulated, 1);
  MetWithin(&c, 1, 2, "");
  report.AddClaim(c);
  c.id = "sample.first";
  MetWithin(&c, 2, 3, "of no <reason>");
  report.AddClaim(c);
  const auto files = FilesOf(report);
  EXPECT_THAT(files.at("claims.json"), HasSubstr("\"sample.first\""));
  for (const char* page : {"report.md", "report.html"}) {
    const std::string& text = files.at(page);
    EXPECT_LT(text.find("sample.first"), text.find("sample.second")) << page;
    EXPECT_THAT(text, HasSubstr("of no &lt;reason&gt;")) << page;
  }
  for (const char* same : {"records.csv", "run.json", "deterministic.csv", "samples.csv"}) {
    EXPECT_EQ(files.at(same), before.at(same));
  }
  report.AddClaim(c);
  EXPECT_FALSE(report.Files().ok());
}

TEST(ReportTest, DeterministicColumnsAndSamples) {
  ReportOptions options;
  options.name = "x";
  options.environment = SampleEnvironment();
  Report report(options);
  Table t("t", "T");
  t.AddKey("k");
  t.AddColumn({"a", "a", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"b", "b", "", "ms", Origin::kSimulated, 1});
  t.AddColumn({"c", "c", "", "", Origin::kComputed, 1, /*varies=*/true});
  t.AddColumn({"d", "d", "", "", Origin::kComputed, 1});
  t.AddRow({Label("one"), Measured(2).WithSamples({1, 2.5, 2}), Simulated(0.1 + 0.2), Computed(4),
            Missing("none")});
  report.AddTable(std::move(t));
  const auto files = FilesOf(report);
  EXPECT_EQ(files.at("deterministic.csv"),
            "table,configuration,metric,unit,value\nt,k=one,b,ms,0.3\nt,k=one,d,,\n");
  EXPECT_EQ(files.at("samples.csv"),
            "table,configuration,metric,unit,index,value\n"
            "t,k=one,a,ms,0,1\nt,k=one,a,ms,1,2.5\nt,k=one,a,ms,2,2\n");
}

TEST(ReportTest, EqualInputsGiveEqualBytes) {
  EXPECT_EQ(FilesOf(SampleReport()), FilesOf(SampleReport()));
}

TEST(ReportTest, MarkupIsBalancedAndIdsAreUnique) {
  for (const auto& [name, text] : FilesOf(SampleReport())) {
    if (absl::EndsWith(name, ".html") || absl::EndsWith(name, ".svg")) {
      EXPECT_EQ(MarkupMistake(text), "") << name;
    }
  }
}

TEST(ReportTest, NothingIsFetched) {
  for (auto [name, text] : FilesOf(SampleReport())) {
    absl::StrReplaceAll({{"http://www.w3.org/2000/svg", ""}}, &text);
    EXPECT_THAT(text, Not(HasSubstr("http:"))) << name;
    EXPECT_THAT(text, Not(HasSubstr("https:"))) << name;
    EXPECT_THAT(text, Not(HasSubstr("src=\""))) << name;
    EXPECT_THAT(text, Not(HasSubstr("url("))) << name;
    EXPECT_THAT(text, Not(HasSubstr("@import"))) << name;
  }
  EXPECT_THAT(SampleReport().ToHtml(), HasSubstr("default-src 'none'"));
}

TEST(ReportTest, HtmlShowsTextAndNotMarkupOfTheCaller) {
  const std::string html = SampleReport().ToHtml();
  EXPECT_THAT(html, HasSubstr("<h1>A sample &lt;report&gt; &amp; its parts</h1>"));
  EXPECT_THAT(html, HasSubstr("<p>Second paragraph.</p>"));
  EXPECT_THAT(html,
              HasSubstr("<li>The machine has fewer cores than the pipeline has devices: a &amp; b "
                        "&lt;c&gt;.</li>"));
  EXPECT_THAT(html, HasSubstr("<td>gpipe,&lt;1f1b&gt;</td>"));
  EXPECT_THAT(html, HasSubstr("Processor(R) @ 2.00GHz"));
  EXPECT_THAT(html, HasSubstr("Where the measured step of 1F1B &lt;&amp;&gt; went"));
  for (const char* raw : {"<c>", "<report>", "<1f1b>", "<&", "<flush>", "<interrupted>"}) {
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  }
}

TEST(ReportTest, JsonReadsBack) {
  const auto files = FilesOf(SampleReport());
  for (const auto& [name, text] : files) {
    if (!absl::EndsWith(name, ".json")) continue;
    EXPECT_THAT(ParseJson(text, name), IsOk());
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json config, ParseJson(files.at("config.json"), "config"));
  EXPECT_EQ(config["seed"], 7);
  EXPECT_EQ(config["settings"]["steps"], 50);
  EXPECT_EQ(config["settings"]["learning_rate"], 0.1);
  EXPECT_EQ(config["settings"]["ties"], false);
  EXPECT_EQ(config["settings"]["schemes"], "gpipe,<1f1b>");
}

TEST(ReportTest, EveryCsvRowHasTheHeadersFields) {
  for (const auto& [name, text] : FilesOf(SampleReport())) {
    if (!absl::EndsWith(name, ".csv") || absl::StartsWith(name, "schedule")) continue;
    size_t expected = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      size_t fields = 1;
      bool quoted = false;
      for (char c : line) {
        if (c == '"') quoted = !quoted;
        if (c == ',' && !quoted) ++fields;
      }
      EXPECT_FALSE(quoted) << name << ": " << line;
      if (expected == 0) expected = fields;
      EXPECT_EQ(fields, expected) << name << ": " << line;
    }
    EXPECT_GT(expected, 1u) << name;
  }
}

TEST(ReportTest, BreakdownAddsUpToTheStep) {
  // Device 0 of the measured trace: parts in ms, from the file that others would read.
  double sum = 0;
  int parts = 0;
  const auto files = FilesOf(SampleReport());
  for (absl::string_view line : absl::StrSplit(files.at("records.csv"), '\n')) {
    const std::vector<std::string> f = absl::StrSplit(line, ',');
    if (f.size() != 9 || f[1] != "breakdown_1f1b_measured" || !absl::EndsWith(f[2], "device=0"))
      continue;
    if (f[4] != "ms" || f[3] == "compute_cpu") continue;
    EXPECT_EQ(f[6], "measured");
    sum += std::atof(f[5].c_str());
    ++parts;
  }
  EXPECT_EQ(parts, 7);
  EXPECT_NEAR(sum, ToMs(SimulateSample("1f1b", 4, 8).trace.makespan), 1e-9);
}

class WriteToTest : public testing::Test {
 protected:
  void SetUp() override { dir_ = absl::StrCat(testing::TempDir(), "/report_test"); }
  void TearDown() override { RemoveTree(dir_).IgnoreError(); }
  std::string dir_;
};

TEST_F(WriteToTest, PublishesAllFiles) {
  ASSERT_THAT(SampleReport().WriteTo(dir_ + "/a/b"), IsOk());
  for (const auto& [name, text] : FilesOf(SampleReport())) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(std::string written, ReadFile(JoinPath(dir_ + "/a/b", name)));
    EXPECT_EQ(written, text) << name;
  }
}

TEST_F(WriteToTest, AFailedReportLeavesAnOlderResultAlone) {
  ASSERT_THAT(SampleReport().WriteTo(dir_), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string before, ReadFile(JoinPath(dir_, "report.html")));
  Report broken = SampleReport();
  Table wrong("wrong", "x");
  wrong.AddRow({Label("no such column")});
  broken.AddTable(std::move(wrong));
  EXPECT_THAT(broken.WriteTo(dir_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("table 'wrong'")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string after, ReadFile(JoinPath(dir_, "report.html")));
  EXPECT_EQ(before, after);
}

TEST_F(WriteToTest, AnUnwritableFolderIsNamedWithItsOption) {
  const absl::Status status = SampleReport().WriteTo("/proc/no/such/folder");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("--out=/proc/no/such/folder"));
}

TEST(ReportTest, MistakesAreKept) {
  const SampleRun run = SimulateSample("1f1b", 2, 2), other = SimulateSample("gpipe", 2, 4);
  const auto mistake = [](auto act) {
    Report r = SampleReport();
    act(r);
    return std::string(r.Files().status().message());
  };
  EXPECT_THAT(mistake([](Report& r) { r.AddTable(Table("schemes", "again")); }),
              HasSubstr("two tables are called 'schemes'"));
  EXPECT_THAT(mistake([](Report& r) { r.AddConfig("steps", 1); }), HasSubstr("setting 'steps'"));
  EXPECT_THAT(mistake([&](Report& r) { r.AddTimeline("x", run.program, other.trace); }),
              HasSubstr("trace"));
  EXPECT_THAT(mistake([&](Report& r) {
                r.AddTimeline("x", run.program, run.trace);
                r.AddTimeline("X", run.program, run.trace);
              }),
              HasSubstr("two timelines 'x_simulated'"));
  EXPECT_THAT(mistake([&](Report& r) {
                r.AddTimeline("x", run.program, run.trace);
                r.AddTimeline("x", other.program, AsMeasured(other));
              }),
              HasSubstr("two schedules for 'schedule_x.csv'"));
  EXPECT_THAT(mistake([](Report& r) { r.AddLossCurves("Training LOSS", "y", {}); }),
              HasSubstr("two charts"));
  EXPECT_THAT(mistake([](Report& r) { r.AddOverview("none", {}); }), HasSubstr("no table 'none'"));
  EXPECT_THAT(mistake([](Report& r) {
                r.AddOverview("schemes", {"bubble", "x"});
              }),
              HasSubstr("the table 'schemes' has no column 'x'"));
}

TEST(ReportTest, BeginsWithTheTakeaway) {
  Report report = SampleReport();
  report.SetTakeaway("1F1B <&> wins.");
  report.AddOverview("schemes", {"bubble"});
  EXPECT_THAT(report.Files(), IsOk());
  const std::string html = report.ToHtml();
  EXPECT_LT(html.find("1F1B &lt;&amp;&gt; wins."), html.find("First paragraph"));
  EXPECT_LT(html.find("class=\"overview\""), html.find("<table id=\"schemes\""));
  EXPECT_THAT(report.ToMarkdown(), HasSubstr("wins.**\n\nFirst paragraph"));
}

TEST(ReportTest, CurvesHaveStepsOfTheirOwn) {
  Report report = SampleReport();
  Series training, held_out;
  training.name = "training";
  training.values = {4, 3, 2.5, 2.25};
  held_out.name = "held out";
  held_out.values = {3.5, 2.75};
  held_out.steps = {2, 6};
  report.AddLossCurves("Loss", "loss [nats]", {training, held_out});
  const auto files = FilesOf(report);
  EXPECT_EQ(files.at("curves_loss.csv"),
            "step,training,held out\n1,4,\n2,3,3.5\n3,2.5,\n4,2.25,\n6,,2.75\n");
  EXPECT_THAT(files.at("curves_loss.svg"), HasSubstr("held out: from 3.500 to 2.750 at step 6."));
  report.AddCurves("Throughput", "batch, samples", "samples/s", {held_out});
  EXPECT_EQ(FilesOf(report).at("curves_throughput.csv"),
            "\"batch, samples\",held out\n2,3.5\n6,2.75\n");
  EXPECT_THAT(report.ToHtml(), HasSubstr(">batch, samples</text>"));
  held_out.values = {1, 2, 3};
  held_out.steps = {1, 4, 16};
  report.AddCurves("Doubling", "batch", "x", {held_out}, /*doubling=*/true);
  // The middle of the axis, which runs from 70 to 796, is the root of 16.
  EXPECT_THAT(FilesOf(report).at("curves_doubling.svg"), HasSubstr(" 433,"));
  held_out.steps = {2};
  report.AddLossCurves("Other loss", "loss [nats]", {held_out});
  EXPECT_THAT(std::string(report.Files().status().message()),
              HasSubstr("the line 'held out' has 3 values at 1 steps"));
}

TEST(ReportTest, TracesWithoutSpansAndLargeOnesGetNoPicture) {
  Report report = SampleReport();
  SampleRun run = SimulateSample("1f1b", 2, 2);
  for (DeviceTrace& d : run.trace.devices) d.spans.clear();
  report.AddTimeline("bare", run.program, run.trace);
  const SampleRun huge = SimulateSample("gpipe", 4, 3000);
  report.AddTimeline("huge", huge.program, huge.trace);
  const auto files = FilesOf(report);
  EXPECT_EQ(files.count("schedule_bare.csv"), 1u);
  EXPECT_EQ(files.count("timeline_bare_simulated.svg"), 0u);
  EXPECT_EQ(files.count("schedule_huge.csv"), 1u);
  EXPECT_EQ(files.count("trace_huge_simulated.json"), 0u);
  EXPECT_THAT(files.at("report.md"),
              HasSubstr("No timeline of huge: 4 devices, 3000 micro-batches"));
  EXPECT_THAT(files.at("report.md"), HasSubstr("Where the simulated step of huge went"));
}

// A page must open fast and be sent by mail: drawings beyond a size are left to their files.
TEST(ReportTest, LargeStudiesHaveSmallPages) {
  Report report = SampleReport();
  for (const char* scheme : {"1f1b", "gpipe", "interleaved", "zb_h1", "zbv", "breadth_first"}) {
    const SampleRun run = SimulateSample(scheme, 8, 400);
    report.AddTimeline(absl::StrCat(scheme, "_large"), run.program, run.trace);
  }
  const std::string html = report.ToHtml();
  EXPECT_LT(html.size(), 2'000'000u);
  EXPECT_GT(html.size(), 1'000'000u);
  EXPECT_THAT(html,
              HasSubstr("The drawing is in the file timeline_breadth_first_large_simulated.svg "
                        "only, to keep this page small."));
  EXPECT_EQ(MarkupMistake(html), "");
}

TEST(EnvironmentTest, NamesNoPersonAndNoMachine) {
  const Environment env = ReadEnvironment();
  EXPECT_GE(env.cores, 1);
  EXPECT_EQ(env.date.size(), std::string("2024-05-01T12:00:00Z").size());
  EXPECT_THAT(env.compiler, Not(HasSubstr("unknown")));
  EXPECT_FALSE(env.packages.empty());  // libabsl-dev, or this would not have been built
  const std::string json = EnvironmentJson(env);
  PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json j, ParseJson(json, "env"));
  EXPECT_EQ(j["cores"], env.cores);
  const auto host = ReadFile("/etc/hostname");
  if (host.ok() && host->size() > 4) {
    EXPECT_THAT(json, Not(HasSubstr(host->substr(0, host->find('\n')))));
  }
}

}  // namespace
}  // namespace pipelab
