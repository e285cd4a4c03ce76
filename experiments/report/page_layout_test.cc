// The layout of report.html at the widths of a desktop, a tablet and a phone, in light and dark and
// in print: nothing is cut, no text lies on another.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "experiments/report/page_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What is wrong with the layout, one line for each fault. Texts are lines of text nodes that are
// seen; a table that scrolls must keep its first column.
constexpr char kFaults[] = R"js((() => {
  const faults = [];
  const seen = (e) => e.checkVisibility() && !e.closest('.hidden, .skip, script, style, desc, title');
  const name = (e) => e.tagName + '.' + (e.getAttribute('class') ?? '') + ' "' +
      e.textContent.trim().slice(0, 40) + '"';
  const page = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > page) faults.push(`the page is ${
      document.documentElement.scrollWidth} wide, the window ${page}`);
  const scrolls = (e) => e.closest('.scroll:not(.cards), .drawing');
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || !seen(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const b of range.getClientRects()) {
      if (b.width < 1 || b.height < 1) continue;
      if (!scrolls(e) && (b.left < -0.5 || b.right > page + 0.5)) faults.push('cut: ' + name(e));
      texts.push({e, left: b.left, right: b.right, top: b.top, bottom: b.bottom});
    }
  }
  texts.sort((a, b) => a.top - b.top);
  texts.forEach((a, i) => {
    for (let j = i + 1; j < texts.length && texts[j].top < a.bottom - 2; ++j) {
      const b = texts[j];
      // Lines' boxes are taller than their letters.
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      if (wide > 1 && high > 0.35 * Math.min(a.bottom - a.top, b.bottom - b.top)) {
        faults.push(`overlap: ${name(a.e)} and ${name(b.e)}`);
      }
    }
  });
  for (const table of document.querySelectorAll('.scroll table')) {
    const region = table.closest('.scroll');
    if (!seen(table) || region.scrollWidth <= region.clientWidth + 1) continue;
    if (page > 1000 && table.tHead.rows[0].cells.length <= 14) faults.push('cut: table ' + table.id);
    const first = table.tBodies[0].rows[0].cells[0], before = first.getBoundingClientRect().left;
    region.scrollLeft = region.scrollWidth;
    const after = first.getBoundingClientRect().left;
    region.scrollLeft = 0;
    if (Math.abs(after - before) > 1) faults.push('the first column moves: ' + table.id);
    if (page <= 1000) faults.push('not cards: ' + table.id);
  }
  return [faults.slice(0, 10).join('\n'), texts.length];
})())js";

class LayoutTest : public PageTest {
 protected:
  void Resize(int width) {
    ASSERT_THAT(
        browser_->Call(
            "Emulation.setDeviceMetricsOverride",
            {{"width", width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}}),
        IsOk());
    NextFrame();
    NextFrame();
  }
  // At each width, as it opens and with all that is folded (in dark: colours do not move anything).
  void ExpectNothingIsCut(const std::string& page, int least_texts) {
    for (const int width : {1280, 768, 390}) {
      Resize(width);
      for (const char* scheme : {"light", "dark"}) {
        ASSERT_THAT(browser_->Emulate("screen", scheme), IsOk());
        Get(absl::StrCat("document.querySelectorAll('details').forEach((d) => d.open = ",
                         scheme == std::string("dark"), ")"));
        NextFrame();
        const nlohmann::json found = Get(kFaults);
        EXPECT_EQ(found[0], "") << page << " " << width << " " << scheme;
        EXPECT_GT(found[1].get<int>(), least_texts) << page;
      }
    }
  }
  void TearDown() override {
    if (browser_ != nullptr) Resize(1200);
  }
};

TEST_F(LayoutTest, NothingIsCutOrOverlaps) { ExpectNothingIsCut("sample", 300); }

// The pages of studies, as //experiments:all leaves them in a folder:
//   tools/bazel test --test_env=PIPELAB_REPORTS=$PWD/results //experiments/report:page_test
TEST_F(LayoutTest, NothingIsCutInStudies) {
  const char* folder = std::getenv("PIPELAB_REPORTS");
  if (folder == nullptr) GTEST_SKIP() << "PIPELAB_REPORTS is not set to results of studies";
  int pages = 0;
  for (const auto& study : std::filesystem::directory_iterator(folder)) {
    const std::string path = study.path() / "report.html";
    if (!std::filesystem::exists(path)) continue;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string html, ReadFile(path));
    ASSERT_THAT(browser_->Open(html), IsOk()) << path;
    ExpectNothingIsCut(path, 50);
    ++pages;
  }
  EXPECT_GT(pages, 0) << folder;
}

TEST_F(LayoutTest, NoTextOverlapsInPrint) {
  Resize(1031);
  ASSERT_THAT(browser_->Emulate("print", "light"), IsOk());
  Get("dispatchEvent(new Event('beforeprint'))");
  EXPECT_THAT(Text(kFaults), Not(HasSubstr("overlap")));
  // Every timeline is printed.
  EXPECT_EQ(Get("[...document.querySelectorAll('.pane')].every((p) => p.checkVisibility())"), true);
}

// The measure above can fail.
TEST_F(LayoutTest, FaultsAreFound) {
  Resize(1280);
  Get("document.querySelector('h1').style.marginBottom = '-3rem'");
  EXPECT_THAT(Text(kFaults), HasSubstr("overlap: P.takeaway"));
  Get("document.querySelector('h1').style.cssText = 'white-space: nowrap; width: 3000px; "
      "text-align: right'");
  EXPECT_THAT(Text(kFaults), HasSubstr("cut: H1."));
  Get("document.querySelectorAll('#wide :is(th, td)').forEach((c) => c.style.position = 'static')");
  EXPECT_THAT(Text(kFaults), HasSubstr("the first column moves: wide"));
}

// A table that is too wide for a phone shows each row as a card, with a label for each value.
TEST_F(LayoutTest, PhonesGetCards) {
  Resize(390);
  const std::string cell = "document.querySelectorAll('#wide tbody td')[3]";
  EXPECT_EQ(Get("document.querySelector('#wide').parentElement.classList.contains('cards')"), true);
  EXPECT_EQ(Text(absl::StrCat("getComputedStyle(", cell, ", '::before').content")),
            "\"throughput of variant 3 [Tflop/s, simulated]\"");
  Click("document.querySelectorAll('#wide thead button')[1]");
  EXPECT_EQ(Text("document.querySelector('#wide thead th:nth-child(2)').ariaSort"), "ascending");
  Resize(1280);
  EXPECT_EQ(Get("document.querySelector('#wide').parentElement.classList.contains('cards')"),
            false);
}

TEST_F(LayoutTest, BeginsWithTakeawayAndBars) {
  EXPECT_EQ(Text("document.querySelector('header p').textContent"), "gpipe has the longest step.");
  EXPECT_EQ(Get("document.querySelector('.overview').compareDocumentPosition("
                "document.querySelector('table')) & Node.DOCUMENT_POSITION_FOLLOWING"),
            4);
  EXPECT_EQ(Text("[...document.querySelectorAll('.overview h3')].map((h) => h.textContent).join()"),
            "step time ms, measured,bubble %, simulated");
  // As long as their values.
  EXPECT_EQ(
      Text("(() => { const rows = [...document.querySelectorAll('.panel')[0].querySelectorAll("
           "'li')]; const width = (r) => r.querySelector('.fill').offsetWidth / "
           "r.querySelector('.track').offsetWidth; const value = (r) => "
           "Number(r.querySelector('.value').textContent); return rows.every((r) => "
           "Math.abs(width(r) / width(rows[0]) - value(r) / value(rows[0])) < 0.02) ? 'yes' : "
           "rows.map((r) => [width(r), value(r)]).join(); })()"),
      "yes");
  // Long tables are folded.
  EXPECT_EQ(Get("document.querySelector('#long').checkVisibility()"), false);
}

TEST_F(LayoutTest, OneTimelineAtATime) {
  const auto shown = [&] {
    return Text(
        "[...document.querySelectorAll('.pane')].filter((p) => !p.hidden).map((p) => "
        "p.querySelector('h3').textContent).join('; ')");
  };
  const auto button = [](int group, int i) {
    return absl::StrCat("document.querySelectorAll('.tabs > div')[", group,
                        "].querySelectorAll('button')[", i, "]");
  };
  EXPECT_EQ(shown(), "gpipe, simulated");
  EXPECT_EQ(Get(button(1, 1) + ".disabled"), true);  // gpipe has no measured step
  Click(button(0, 1));
  EXPECT_EQ(shown(), "1F1B <&>, simulated");
  Click(button(1, 1));
  EXPECT_EQ(shown(), "1F1B <&>, measured");
  Click(button(0, 0));  // the only one that it has
  EXPECT_EQ(shown(), "gpipe, simulated");
  EXPECT_EQ(Text(button(0, 0) + ".getAttribute('aria-pressed')"), "true");
}

}  // namespace
}  // namespace pipelab
