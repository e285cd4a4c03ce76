#include "experiments/report/table.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/records.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(MarkupTest, Escapes) {
  EXPECT_EQ(HtmlEscape("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(MarkdownEscape("a<b>&c"), "a&lt;b&gt;&amp;c");
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
}

TEST(MarkupTest, Numbers) {
  EXPECT_EQ(FixedNumber(2.5, 2), "2.50");
  EXPECT_EQ(FixedNumber(-0.001, 2), "0.00");
  EXPECT_EQ(FixedNumber(-0.006, 2), "-0.01");
  EXPECT_EQ(FixedNumber(kNan, 2), "nan");
  EXPECT_EQ(ShortNumber(2.50, 2), "2.5");
  EXPECT_EQ(ShortNumber(100, 2), "100");
  EXPECT_EQ(ShortNumber(100, 0), "100");
  EXPECT_EQ(FullNumber(0.1), "0.1");
  EXPECT_EQ(FullNumber(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(FullNumber(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(MarkupTest, Slugs) {
  EXPECT_EQ(Slug("1F1B, <no> flush!"), "1f1b_no_flush");
  EXPECT_EQ(Slug("../../etc"), "etc");
  EXPECT_EQ(Slug("<&>"), "x");
  EXPECT_TRUE(IsSlug("step_time"));
  EXPECT_FALSE(IsSlug("step__time"));
  EXPECT_FALSE(IsSlug("Step"));
  EXPECT_FALSE(IsSlug(""));
}

Table TwoColumns() {
  Table t("t", "A <table>");
  t.AddKey("scheme");
  t.AddColumn({"step_time", "step time", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"bubble", "bubble, with \"quotes\"", "", "%", Origin::kSimulated, 2});
  return t;
}

Table Filled() {
  Table t = TwoColumns();
  t.AddRow({Label("a|b"), Measured(1.25), Simulated(50)});
  t.AddRow({Label("c,d"), Missing("no <time>"), Simulated(7).WithNote("second")});
  t.AddRow({Label("e"), Missing("no <time>"), Simulated(8)});
  t.AddNote("all & more");
  return t;
}

TEST(TableTest, Terminal) {
  EXPECT_TRUE(Filled().status().ok()) << Filled().status();
  EXPECT_EQ(Filled().ToTerminal(),
            "A <table>\n"
            "\n"
            "                     bubble,\n"
            "                        with\n"
            "scheme  step time   \"quotes\"\n"
            "               ms          %\n"
            "         measured  simulated\n"
            "------  ---------  ---------\n"
            "a|b           1.2      50.00\n"
            "c,d         - [1]   7.00 [2]\n"
            "e           - [1]       8.00\n"
            "\n"
            "[1] no <time>\n"
            "[2] second\n"
            "all & more\n");
}

TEST(TableTest, NotesAreNumberedInReadingOrderAndOnlyOnce) {
  const Table t = Filled();
  EXPECT_EQ(t.cell_notes(), (std::vector<std::string>{"no <time>", "second"}));
  EXPECT_EQ(t.NoteNumber(t.rows()[0][1]), 0);
  EXPECT_EQ(t.NoteNumber(t.rows()[1][1]), 1);
  EXPECT_EQ(t.NoteNumber(t.rows()[1][2]), 2);
  EXPECT_EQ(t.NoteNumber(t.rows()[2][1]), 1);
}

TEST(TableTest, Markdown) {
  EXPECT_THAT(Filled().ToMarkdown(), HasSubstr("| a\\|b | 1.2 | 50.00 |\n"
                                               "| c,d | - [1] | 7.00 [2] |\n"
                                               "| e | - [1] | 8.00 |\n"));
  EXPECT_THAT(Filled().ToMarkdown(), HasSubstr("| scheme | step time [ms] |"));
  EXPECT_THAT(Filled().ToMarkdown(), HasSubstr("\\[1\\] no &lt;time&gt;\n"));
}

TEST(TableTest, HtmlIsATableThatScreenReadersCanRead) {
  const std::string html = Filled().ToHtml();
  EXPECT_THAT(html, HasSubstr("<caption>A &lt;table&gt;</caption>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" class=\"num\"><span>step time</span>"
                              "<span class=\"unit\">ms</span>"
                              "<span class=\"origin measured\">measured</span></th>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">c,d</th>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"num\" data-v=\"1.25\">1.2</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"num\" data-missing>-<sup><a href=\"#t-note-1\""));
  EXPECT_THAT(html, HasSubstr("<li id=\"t-note-1\">no &lt;time&gt;</li>"));
  EXPECT_THAT(html, Not(HasSubstr("<time>")));
}

TEST(TableTest, CsvHasFullPrecisionAndEmptyMissingValues) {
  Table t = TwoColumns();
  t.AddRow({Label("c,d"), Measured(0.1 + 0.2), Missing("why")});
  EXPECT_EQ(t.ToCsv(),
            "scheme,\"step time [ms, measured]\",\"bubble, with \"\"quotes\"\" [%, simulated]\"\n"
            "\"c,d\",0.30000000000000004,\n");
}

TEST(TableTest, OriginsNeverMixInAColumn) {
  Table t = TwoColumns();
  t.AddRow({Label("a"), Simulated(1), Simulated(1)});
  EXPECT_THAT(
      t.status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "table 't': row 1, column 'step_time': a simulated value among measured ones"));
  EXPECT_TRUE(t.rows().empty());
}

TEST(TableTest, TheFirstMistakeIsKept) {
  const auto mistake = [](std::vector<Cell> cells) {
    Table t = TwoColumns();
    t.AddRow({Label("first"), Measured(1), Simulated(1)});
    t.AddRow(std::move(cells));
    t.AddRow({Label("short")});
    return std::string(t.status().message());
  };
  EXPECT_THAT(mistake({Label("a"), Measured(1)}), HasSubstr("row 2 has 2 cells for 3 columns"));
  EXPECT_THAT(mistake({Label("a"), Missing(""), Simulated(1)}), HasSubstr("needs a reason"));
  EXPECT_THAT(mistake({Missing("x"), Measured(1), Simulated(1)}),
              HasSubstr("key cannot be missing"));
  EXPECT_THAT(mistake({Label("first"), Measured(1), Simulated(1)}),
              HasSubstr("two rows with the key 'scheme=first'"));
  EXPECT_THAT(mistake({Label(""), Measured(1), Simulated(1)}), HasSubstr("empty"));
}

TEST(TableTest, ColumnsAreChecked) {
  const auto mistake = [](Column c) {
    Table t = TwoColumns();
    t.AddColumn(std::move(c));
    return std::string(t.status().message());
  };
  Column c;
  c.title = "x";
  c.metric = "Not a name";
  EXPECT_THAT(mistake(c), HasSubstr("'Not a name'"));
  c.metric = "bubble";
  EXPECT_THAT(mistake(c), HasSubstr("two columns are called 'bubble'"));
  c.metric = "fine";
  EXPECT_EQ(mistake(c), "");
  c.title = "";
  EXPECT_THAT(mistake(c), HasSubstr("no title"));
  EXPECT_THAT(Table("Bad id", "x").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("id")));
}

TEST(TableTest, PublishedValuesShowTheirTag) {
  Table t("t", "x");
  t.AddKey("k");
  t.AddColumn({"p", "p", "", "", Origin::kPublished});
  t.AddRow({Label(1), Published(43, "read")});
  EXPECT_EQ(t.CellText(0, 1), "43 (read)");
  EXPECT_TRUE(t.status().ok());
  t.AddRow({Label(2), Published(44, "")});
  EXPECT_THAT(t.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a tag")));
}

TEST(RecordsTest, ARowForEachCell) {
  EXPECT_EQ(RecordsCsv("exp", {Filled()}),
            "experiment,table,configuration,metric,unit,value,origin,tag,note\n"
            "exp,t,scheme=a|b,step_time,ms,1.25,measured,,\n"
            "exp,t,scheme=a|b,bubble,%,50,simulated,,\n"
            "exp,t,\"scheme=c,d\",step_time,ms,,measured,,no <time>\n"
            "exp,t,\"scheme=c,d\",bubble,%,7,simulated,,second\n"
            "exp,t,scheme=e,step_time,ms,,measured,,no <time>\n"
            "exp,t,scheme=e,bubble,%,8,simulated,,\n");
}

TEST(RecordsTest, RunJsonHasGoogleBenchmarksShape) {
  Environment env;
  env.cores = 2;
  env.build = "opt";
  PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json j,
                               ParseJson(RunJson("exp", env, {Filled()}), "run.json"));
  EXPECT_EQ(j["context"]["num_cpus"], 2);
  EXPECT_EQ(j["context"]["library_build_type"], "release");
  ASSERT_EQ(j["benchmarks"].size(), 1u);  // the rows without a time are not benchmarks
  const nlohmann::json& b = j["benchmarks"][0];
  EXPECT_EQ(b["name"], "exp/t/scheme=a|b");
  EXPECT_EQ(b["run_type"], "iteration");
  EXPECT_EQ(b["real_time"], 1.25);
  EXPECT_EQ(b["cpu_time"], 1.25);
  EXPECT_EQ(b["time_unit"], "ms");
  EXPECT_EQ(b["bubble"], 50.0);
  EXPECT_EQ(b["bubble.origin"], "simulated");
}

}  // namespace
}  // namespace pipelab
