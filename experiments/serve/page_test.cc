// The page in Chromium: states in the address, numbers of the command line, keys, widths, and that
// nothing leaves. Skipped by name where there is no browser; --config=browser installs it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "experiments/report/browser.h"
#include "experiments/serve/serve_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/process.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ServePageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!FindBrowser()) return;
    server_ = new TestServer(ServeLimits());
    auto browser = Browser::Start(server_->host());
    ASSERT_TRUE(browser.ok()) << browser.status();
    browser_ = browser->release();
  }
  static void TearDownTestSuite() {
    delete browser_;
    delete server_;
  }
  void SetUp() override {
    if (!FindBrowser() && std::getenv("PIPELAB_BROWSER") == nullptr) GTEST_SKIP() << kNoBrowser;
    ASSERT_NE(browser_, nullptr) << kNoBrowser;
    ASSERT_THAT(browser_->Emulate("screen", "light"), IsOk());
    Width(1200, 900);
  }
  void TearDown() override {
    if (browser_ == nullptr) return;
    EXPECT_THAT(browser_->complaints(), IsEmpty());
    for (const std::string& url : browser_->requests()) {
      EXPECT_TRUE(absl::StartsWith(url, "http://" + server_->host()) ||
                  absl::StartsWith(url, "data:") || absl::StartsWith(url, "blob:"))
          << url;
    }
    for (const std::string& request : browser_->trap().Collect()) {
      // Chromium itself asks for names of its maker's now and then; the page has none.
      EXPECT_FALSE(absl::StrContains(request, "pipelab")) << request;
    }
  }

  static void Width(int width, int height) {
    ASSERT_THAT(browser_
                    ->Call("Emulation.setDeviceMetricsOverride", {{"width", width},
                                                                  {"height", height},
                                                                  {"deviceScaleFactor", 1},
                                                                  {"mobile", width < 600}})
                    .status(),
                IsOk());
  }

  // A page with this state, once it is answered.
  static void Open(const std::string& state) {
    ASSERT_THAT(browser_->OpenUrl("about:blank"), IsOk());
    ASSERT_THAT(browser_->OpenUrl(absl::StrCat("http://", server_->host(), "/", state)), IsOk());
    Await("window.pipelab && window.pipelab.answers > 0");
  }
  static void Await(const std::string& condition) {
    const absl::Time give_up = absl::Now() + absl::Seconds(30);
    while (Get(absl::StrCat("Boolean(", condition, ")")) != true) {
      ASSERT_LT(absl::Now(), give_up)
          << condition << ": " << Text("document.querySelector('main').innerText");
      absl::SleepFor(absl::Milliseconds(10));
    }
  }
  static nlohmann::json Get(const std::string& expression) {
    const auto value = browser_->Evaluate(expression);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : nlohmann::json();
  }
  static std::string Text(const std::string& expression) {
    const nlohmann::json value = Get(expression);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  // As if the user had typed it; waits for the answer.
  static void Type(const std::string& field, const std::string& value) {
    const nlohmann::json answers = Get("window.pipelab.answers");
    Get(absl::StrCat("(() => { const e = document.querySelector('", field, "'); e.value = '", value,
                     "'; e.dispatchEvent(new Event('input', {bubbles: true})); return 1; })()"));
    Await(absl::StrCat("window.pipelab.answers > ", answers.dump()));
  }
  // Runs the command line that the page shows, and gives its JSON.
  static std::string OfCommandLine() {
    std::vector<std::string> words =
        absl::StrSplit(Text("document.querySelector('#command').textContent"), ' ');
    words[0] = "experiments/pipelab";
    words.push_back("--json_out=-");
    const auto result = RunProcess(words);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->output;
  }

  static TestServer* server_;
  static Browser* browser_;
};

TestServer* ServePageTest::server_ = nullptr;
Browser* ServePageTest::browser_ = nullptr;

TEST_F(ServePageTest, TheAddressHasTheState) {
  Open("#scheme=zbv&P=3&M=6&f=2&view=bubble");
  EXPECT_EQ(Text("document.querySelector('[name=scheme]').value"), "zbv");
  EXPECT_EQ(Text("document.querySelector('#command').textContent"),
            "pipelab simulate zbv:P=3,M=6 --forward=2");
  EXPECT_EQ(Text("document.querySelector('[role=tab][aria-selected=true]').textContent"), "Bubble");
  Type("[data-of=M]", "12");
  EXPECT_EQ(Text("location.hash"), "#scheme=zbv&P=3&M=12&f=2&view=bubble");
  const std::string figures = Text("document.querySelector('#figures').textContent");
  Open(Text("location.hash"));
  EXPECT_EQ(Text("document.querySelector('#figures').textContent"), figures);
  Type("[name=P]", "2");
  EXPECT_NE(Text("document.querySelector('#figures').textContent"), figures);
}

TEST_F(ServePageTest, NumbersAreTheCommandLines) {
  for (const char* state :
       {"#P=4", "#scheme=zbv&P=4&M=16&f=1.5&p2p=0.25", "#scheme=chimera&P=8&act=64&wt=512",
        "#mode=model&P=8&M=32&scheme=interleaved&view=memory", "#mode=model&P=2&M=4&model=gpt-52b",
        "#f=1,2,2,1&more=--atomic_pairs"}) {
    Open(state);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json printed, ParseJson(OfCommandLine(), state));
    EXPECT_EQ(Get("window.pipelab.answer().json"), printed) << state;
    const double makespan = Get("window.pipelab.answer().json.makespan");
    EXPECT_THAT(Text("document.querySelector('#figures').textContent"),
                HasSubstr(absl::StrFormat("%.12g", makespan)))
        << state;
  }
}

TEST_F(ServePageTest, ErrorsAreTheCommandLines) {
  Open("#");
  Type("[name=P]", "2000");
  EXPECT_THAT(Text("document.querySelector('#error').textContent"), HasSubstr("devices=2000"));
  Type("[name=P]", "4");
  EXPECT_EQ(Text("document.querySelector('#error').textContent"), "");
  Type("[name=f]", "x");
  EXPECT_THAT(Text("document.querySelector('#error').textContent"), HasSubstr("--forward=x"));
  Open("#mode=model&P=2&M=4&model=gpt-52b");
  EXPECT_THAT(Text("document.querySelector('#error').textContent"), HasSubstr("GiB"));
}

TEST_F(ServePageTest, WhatIsTooMuchToDrawHasFigures) {
  Open("#scheme=zbv&P=128&M=1500");
  EXPECT_THAT(Text("document.querySelector('#legend').textContent"),
              HasSubstr("actions are too many to draw; the limit is 1048576"));
  EXPECT_EQ(Get("document.querySelectorAll('#devices tbody tr').length"), 128);
  Type("[name=M]", "8");
  EXPECT_EQ(Get("document.querySelector('#timeline figure').hidden"), false);
}

TEST_F(ServePageTest, OwnSchedulesAreShown) {
  Open("#");
  Get("(() => { document.querySelector('#own-text').value = '0F0,0F1,0B0,0B1\\n1F0,1B0,1F1,1B1\\n';"
      "document.querySelector('#own-use').click(); return 1; })()");
  Await("window.pipelab.answer().title === 'own.csv'");
  EXPECT_THAT(Text("location.hash"), HasSubstr("own=0F0"));
  EXPECT_EQ(Get("window.pipelab.answer().json.devices.length"), 2);
  const nlohmann::json shown = Get("window.pipelab.answer().json");
  Open(Text("location.hash"));
  EXPECT_EQ(Get("window.pipelab.answer().json"), shown);
}

TEST_F(ServePageTest, ExportsAreTheCommandLines) {
  Open("#scheme=zbv&P=4&M=8&act=64");
  // What would be saved.
  Get("(() => { HTMLAnchorElement.prototype.click = () => 0;"
      "URL.createObjectURL = (blob) => { blob.text().then((t) => { window.last = t; }); "
      "return 'data:,'; }; return 1; })()");
  const auto saved = [](const char* what) {
    Get(absl::StrCat("(() => { window.last = null; document.querySelector('[data-export=", what,
                     "]').click(); return 1; })()"));
    Await("window.last !== null");
    return Text("window.last");
  };
  const std::vector<std::string> step = {"zbv:P=4,M=8", "--activation_bytes=64MiB"};
  const auto printed = [](std::vector<std::string> words) {
    words.insert(words.begin(), "experiments/pipelab");
    const auto result = RunProcess(words);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->output;
  };
  EXPECT_EQ(saved("svg"), printed({"show", step[0], step[1], "--svg_out=-"}));
  EXPECT_EQ(saved("csv"), printed({"schedule", step[0], "--format=csv"}));
  EXPECT_EQ(saved("text"), printed({"schedule", step[0], "--format=text"}));
  const auto json = ParseJson(saved("json"), "saved");
  const auto figures =
      ParseJson(printed({"simulate", step[0], step[1], "--json_out=-"}), "printed");
  ASSERT_TRUE(json.ok() && figures.ok());
  EXPECT_EQ(*json, *figures);
}

TEST_F(ServePageTest, KeysReachEverything) {
  Open("#");
  ASSERT_THAT(browser_->Key("Tab"), IsOk());
  EXPECT_EQ(Text("document.activeElement.textContent"), "Skip to the results");
  ASSERT_THAT(browser_->Key("Enter"), IsOk());
  EXPECT_EQ(Text("document.activeElement.id"), "content");
  Get("document.querySelector('#tab-timeline').focus()");
  ASSERT_THAT(browser_->Key("ArrowRight"), IsOk());
  EXPECT_EQ(Text("document.activeElement.id"), "tab-memory");
  EXPECT_EQ(Get("document.querySelector('#memory').hidden"), false);
  ASSERT_THAT(browser_->Key("ArrowLeft"), IsOk());
  Get("document.querySelector('#timeline .drawing').focus()");
  ASSERT_THAT(browser_->Key("ArrowRight"), IsOk());
  EXPECT_THAT(Text("document.querySelector('#timeline output').textContent"),
              StartsWith("device 0: forward of micro-batch 0, stage 0: 0.000 to 1.000"));
  // A screen reader has a name for each field, and for each picture.
  EXPECT_EQ(Text("[...document.querySelectorAll('input, select, textarea, button')].filter((e) => "
                 "!e.ariaLabel && !e.labels?.[0]?.textContent.trim() && !e.textContent.trim())"
                 ".map((e) => e.outerHTML).join()"),
            "");
  EXPECT_EQ(Get("[...document.querySelectorAll('svg[role=img]')].every((s) => "
                "s.querySelector('title').textContent.length > 10)"),
            true);
  EXPECT_EQ(Get("document.querySelectorAll('#devices tbody tr').length"), 4);
}

TEST_F(ServePageTest, ComparesAndSearches) {
  Open("#view=compare&cmp=gpipe 1f1b interleaved:P=4,M=8,V=3 gpip");
  Await("document.querySelectorAll('#compare tbody tr').length === 4");
  EXPECT_THAT(Text("document.querySelector('#compare tbody').textContent"),
              HasSubstr("did you mean gpipe?"));
  EXPECT_EQ(Text("document.querySelector('#compare .best th').textContent"),
            "interleaved:P=4,M=8,V=3");
  Open("#view=search&batch=32&sdev=8&top=3");
  Get("document.querySelector('#search-form button').click()");
  Await("document.querySelectorAll('#search tbody tr').length === 3");
  const std::string config = Text("document.querySelector('#search tbody th').textContent");
  const std::string step = Text("document.querySelector('#search tbody td').textContent");
  Get("document.querySelector('#search tbody button').click()");
  Await(
      "document.querySelector('#timeline').hidden === false && window.pipelab.answer().json.unit");
  EXPECT_THAT(Text("window.pipelab.answer().json.config"), StartsWith(config));
  EXPECT_THAT(Text("document.querySelector('#figures').textContent"), HasSubstr(step));
}

TEST_F(ServePageTest, SynthesizesAndStops) {
  Open("#view=synthesize&P=8&M=32&mem=6&limit=60&p2p=0.2&bi=1.3&f=1.1,1.3,1.2,1.7,1,1.45,1.05,1.3");
  Get("document.querySelector('#synthesize-form button').click()");
  Await("document.querySelector('#synthesize .gap path')");
  Get("document.querySelector('#stop').click()");
  Await("document.querySelector('#synthesize .results [role=status]')");
  EXPECT_THAT(Text("document.querySelector('#synthesize .results').textContent"),
              HasSubstr("gap "));
  Get("document.querySelector('#synthesize .results button').click()");
  Await("window.pipelab.answer().title === 'synthesized.txt'");
  EXPECT_EQ(Get("window.pipelab.answer().json.devices.length"), 8);
}

TEST_F(ServePageTest, FitsScreens) {
  const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  for (const int width : {390, 820, 1600}) {
    for (const char* scheme : {"light", "dark"}) {
      ASSERT_THAT(browser_->Emulate("screen", scheme), IsOk());
      Width(width, 900);
      for (const char* view : {"timeline", "memory", "compare", "bubble", "search", "synthesize"}) {
        Open(absl::StrCat("#mode=model&P=8&M=32&scheme=zbv&view=", view));
        if (std::string(view) == "compare") {
          Await("document.querySelectorAll('#compare tbody tr').length > 0");
        }
        EXPECT_LE(Get("document.documentElement.scrollWidth"), width) << width << " " << view;
        PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string png, browser_->Png());
        if (folder == nullptr) continue;
        ASSERT_THAT(WriteFileAtomically(
                        absl::StrCat(folder, "/", view, "_", width, "_", scheme, ".png"), png),
                    IsOk());
      }
    }
  }
}

// Printed, not held to: from the change to the drawing, in the page's own clock.
TEST_F(ServePageTest, TimesOfChanges) {
  for (const auto& [devices, micro_batches, view] :
       {std::make_tuple(16, 64, "timeline"), std::make_tuple(16, 64, "bubble"),
        std::make_tuple(128, 1024, "timeline"), std::make_tuple(128, 1024, "bubble")}) {
    Open(absl::StrCat("#P=", devices, "&M=", micro_batches, "&view=", view));
    double least = 1e9, most = 0;
    for (int i = 0; i < 5; ++i) {
      Type("[name=f]", absl::StrCat(1 + 0.1 * (i + 1)));
      // With the frame that shows it.
      const double ms =
          Get("new Promise((done) => requestAnimationFrame(() => "
              "done(window.pipelab.lastMs)))");
      least = std::min(least, ms);
      most = std::max(most, ms);
    }
    std::printf("P = %d, M = %d, %s: a change is answered in %.0f to %.0f ms (5 changes)\n",
                devices, micro_batches, view, least, most);
    EXPECT_LT(most, 60000);
  }
}

}  // namespace
}  // namespace pipelab
