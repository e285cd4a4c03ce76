#include "experiments/report/page_fixture.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/report/sample.h"

namespace pipelab {
namespace {

// Rows that only a numeric order puts right, a tie, a text among numbers, and missing ones.
Table SortTable() {
  Table t("sorting", "A table to sort");
  t.AddKey("name");
  t.AddColumn({"time", "time", "", "ms", Origin::kSimulated});
  t.AddColumn({"verdict", "verdict", "", "", Origin::kComputed});
  t.AddRow({Label("n10"), Simulated(10), Computed("b")});
  t.AddRow({Label("gone"), Missing("out of memory"), Computed("a10")});
  t.AddRow({Label("n9"), Simulated(9), Computed("a9")});
  t.AddRow({Label("minus"), Simulated(-1), Missing("not asked")});
  t.AddRow({Label("n100"), Simulated(100), Computed("c")});
  t.AddRow({Label("ten too"), Simulated(10), Computed("b")});
  return t;
}

Table WideTable() {
  Table t("wide", "A table of many columns");
  t.AddKey("configuration");
  std::vector<Cell> cells = {Label("breadth_first, 8 x 8 x 16, fully sharded")};
  for (int i = 0; i < 16; ++i) {
    t.AddColumn({absl::StrCat("metric_", i), absl::StrCat("throughput of variant ", i), "",
                 "Tflop/s", Origin::kSimulated, 3});
    cells.push_back(Simulated(12345.678 + i));
  }
  t.AddRow(std::move(cells));
  return t;
}

// A table of claims, with long texts; more rows than stay open below an overview.
Table LongTable() {
  Table t("long", "A table of many rows");
  t.AddKey("id");
  t.AddColumn({"text", "a title that is longer than most", "brief", "", Origin::kComputed});
  for (int i = 0; i < 20; ++i) {
    t.AddRow(
        {Label(absl::StrCat("paper.claim_with_a_long_name_", i)),
         Computed("throughput over the better of two planners, at each size that is printed")});
  }
  return t;
}

Table BarTable() {
  Table t("memory_bars", "A table for bars");
  t.AddKey("name");
  t.AddColumn({"memory", "memory", "", "GiB", Origin::kSimulated});
  t.AddRow({Label("a"), Simulated(8)});
  t.AddRow({Label("b"), Simulated(2)});
  t.AddRow({Label("c"), Missing("does not fit")});
  t.AddRow({Label("d"), Simulated(0)});
  return t;
}

}  // namespace

std::string PageHtml() {
  Report report = SampleReport();
  report.AddTable(SortTable());
  report.AddTable(BarTable());
  report.AddTable(WideTable());
  report.AddTable(LongTable());
  report.SetTakeaway("gpipe has the longest step.");
  report.AddOverview("schemes", {"step_time", "bubble"});
  const SampleRun sliced = SimulateSample("terapipe", 2, 2), both = SimulateSample("chimera", 4, 4);
  report.AddTimeline("terapipe", sliced.program, sliced.trace);
  report.AddTimeline("chimera", both.program, both.trace);
  return report.ToHtml();
}

Browser* PageTest::browser_ = nullptr;

void PageTest::SetUpTestSuite() {
  if (!FindBrowser()) return;
  auto browser = Browser::Start();
  ASSERT_TRUE(browser.ok()) << browser.status();
  browser_ = browser->release();
}

void PageTest::TearDownTestSuite() {
  delete browser_;
  browser_ = nullptr;
}

void PageTest::SetUp() {
  if (!FindBrowser() && std::getenv("PIPELAB_BROWSER") == nullptr) GTEST_SKIP() << kNoBrowser;
  ASSERT_NE(browser_, nullptr) << kNoBrowser;
  ASSERT_THAT(browser_->Emulate("screen", "light"), IsOk());
  ASSERT_THAT(browser_->Open(PageHtml()), IsOk());
}

nlohmann::json PageTest::Get(const std::string& expression) {
  const auto value = browser_->Evaluate(expression);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *value : nlohmann::json();
}

std::string PageTest::Text(const std::string& expression) {
  const nlohmann::json value = Get(expression);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::pair<double, double> PageTest::MiddleOf(const std::string& element) {
  const nlohmann::json at =
      Get(absl::StrCat("(() => { const e = ", element,
                       "; e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                       "return [b.x + b.width / 2, b.y + b.height / 2]; })()"));
  return {at[0], at[1]};
}

void PageTest::Click(const std::string& element) {
  const auto [x, y] = MiddleOf(element);
  ASSERT_THAT(browser_->Click(x, y), IsOk());
}

void PageTest::NextFrame() { Get("new Promise((done) => requestAnimationFrame(() => done(1)))"); }

}  // namespace pipelab
