// Timelines of report.html in a browser: what the pointer is on, zoom, keys.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/page_fixture.h"
#include "experiments/report/sample.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What the page should say of a box.
std::string Described(size_t device, const ExecutedInstruction& s) {
  const std::map<ActionKind, std::string> names = {{ActionKind::kForward, "forward"},
                                                   {ActionKind::kBackward, "backward"}};
  const auto ms = [](int64_t ns) { return FixedNumber(static_cast<double>(ns) / 1e6, 3); };
  return absl::StrCat("device ", device, ": ", names.at(s.action.kind), " of micro-batch ",
                      s.action.micro_batch, ", stage ", s.action.stage, ": ", ms(s.begin_ns),
                      " to ", ms(s.end_ns), " ms (", ms(s.end_ns - s.begin_ns), ")");
}

std::vector<ExecutedInstruction> Computes(const SampleRun& run, size_t device) {
  std::vector<ExecutedInstruction> spans;
  for (const ExecutedInstruction& s : SpansOf(run.program, run.trace, device)) {
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
    const std::vector<ExecutedInstruction> spans = Computes(run_, d);
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
  const ExecutedInstruction seen = Computes(run_, 2)[10];
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
  const std::vector<ExecutedInstruction> first = Computes(run_, 0);
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
