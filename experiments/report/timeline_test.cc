#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "experiments/report/chart_svg.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/sample.h"
#include "experiments/report/svg.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Count(absl::string_view text, absl::string_view what) {
  int n = 0;
  for (size_t at = text.find(what); at != absl::string_view::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

std::string Text(const SampleRun& run, int columns) {
  return TimelineText(run.program, run.trace, columns);
}

TEST(TimelineTextTest, IsThePictureOf1f1b) {
  EXPECT_EQ(Text(SimulateIdeal("1f1b", 3, 4), 60),
            "device 0 |abc....AAdBB.CC.DD|\n"
            "device 1 |.ab..AAcBBdCC.DD..|\n"
            "device 2 |..aAAbBBcCCdDD....|\n"
            "a b c: forward of micro-batch 0 1 2; A B C: backward; .: idle; a character is 1 ms\n");
}

TEST(TimelineTextTest, LegendHasWhatIsSeen) {
  const std::string text = Text(SimulateSample("gpipe", 2, 3, true), 200);
  EXPECT_THAT(text, HasSubstr("~: recompute"));
  EXPECT_THAT(text, HasSubstr("=: optimizer"));
  EXPECT_THAT(text, Not(HasSubstr("reduction")));
}

TEST(TimelineTextTest, FitsTheColumnsAndWrapsLetters) {
  const SampleRun run = SimulateSample("gpipe", 2, 30);
  for (int columns : {1, 7, 40, 300}) {
    const std::vector<std::string> lines = absl::StrSplit(Text(run, columns), '\n');
    EXPECT_LE(lines[0].size(), std::string("device 0 ||").size() + columns);
    EXPECT_EQ(lines[0].size(), lines[1].size());
  }
  // Micro-batch 26 is an a again.
  EXPECT_THAT(Text(run, 300), HasSubstr("xyzabcd"));
  EXPECT_EQ(Text(SampleRun(), 80), "no spans to show\n");
}

TEST(TimelineTextTest, SaysForwardOrBackwardWhereActionsAreShorterThanACharacter) {
  EXPECT_EQ(Text(SimulateIdeal("gpipe", 2, 30), 8),
            "device 0 |FFFBBBBB|\n"
            "device 1 |FFFBBBBB|\n"
            "F: forward; B: backward; a character is 11.6 ms and shows its middle\n");
  EXPECT_THAT(
      Text(SimulateIdeal("interleaved", 2, 30), 8),
      HasSubstr("1 2 3: forward of a device's first, second, third stage; A B C: backward"));
}

TEST(TimelineTextTest, ColoursChangeNoCharacter) {
  const SampleRun run = SimulateIdeal("1f1b", 2, 2);
  const std::string text = TimelineText(run.program, run.trace, 60, /*colours=*/true);
  EXPECT_THAT(text, HasSubstr("\033[34mab\033[0m"));
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  EXPECT_EQ(plain, Text(run, 60));
}

TEST(TimelineSvgTest, SchedulesWithoutAClockAreInUnits) {
  const SampleRun run = SimulateIdeal("1f1b", 4, 8);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string svg,
                               TimelineSvg("t", "1f1b", run.program, run.trace, 1000000));
  EXPECT_THAT(svg, HasSubstr("simulated step 33 units, bubble 27.3 %"));
  EXPECT_THAT(svg, HasSubstr("time [units]"));
  EXPECT_THAT(svg, HasSubstr(" units</title>"));
  EXPECT_THAT(svg, Not(HasSubstr(" ms")));
}

TEST(TimelineSvgTest, WithoutRoomForNumbersTheyFitAScreen) {
  const SampleRun run = SimulateIdeal("1f1b", 4, 500);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string svg,
                               TimelineSvg("t", "1f1b", run.program, run.trace));
  EXPECT_EQ(Count(svg, "width=\"1698\""), 2);
  EXPECT_EQ(Count(svg, "too narrow for numbers of micro-batches"), 1);
}

TEST(ChromeTraceTest, SlicesNeverOverlapInAThread) {
  for (const char* scheme : {"gpipe", "1f1b", "interleaved", "chimera", "breadth_first", "po_h"}) {
    const SampleRun run = SimulateSample(scheme, 4, 8);
    PIPELAB_ASSERT_OK_AND_ASSIGN(std::string text,
                                 ChromeTrace(scheme, run.program, AsMeasured(run)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json j, ParseJson(text, "trace"));
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> slices;
    int flows_out = 0, flows_in = 0, counters = 0, host_lanes = 0;
    for (const nlohmann::json& e : j["traceEvents"]) {
      if (e["ph"] == "X") slices[{e["pid"], e["tid"]}].emplace_back(e["ts"], e["dur"]);
      host_lanes += e["ph"] == "M" && e["tid"] == 2 && e["args"]["name"] == "host copies";
      flows_out += e["ph"] == "s";
      flows_in += e["ph"] == "f";
      counters += e["ph"] == "C";
    }
    // 4 devices, 2 threads; where there are copies to the host, a third one of their times.
    EXPECT_EQ(host_lanes, scheme == std::string("po_h") ? 4 : 0);
    EXPECT_EQ(slices.size(), 8u + host_lanes) << scheme;
    for (int d = 0; d < host_lanes; ++d) {
      const auto& copies = slices[{d, 2}];
      EXPECT_EQ(copies.size(), run.trace.devices[d].host_copies.size());
      for (const auto& [begin, duration] : copies) EXPECT_EQ(duration, 500);
    }
    for (auto& [thread, list] : slices) {
      std::sort(list.begin(), list.end());
      for (size_t i = 1; i < list.size(); ++i) {
        EXPECT_LE(list[i - 1].first + list[i - 1].second, list[i].first + 1e-6) << scheme;
      }
    }
    EXPECT_EQ(flows_out, static_cast<int>(run.program.messages.size()));
    EXPECT_EQ(flows_in, flows_out);
    EXPECT_GT(counters, 0);
    EXPECT_EQ(j["otherData"]["origin"], "measured");
  }
}

TEST(ChromeTraceTest, KeepsEachNanosecondAndEscapesNames) {
  SampleRun run = SimulateSample("1f1b", 1, 1);
  run.trace.devices[0].spans[0].end_ns -= 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string text, ChromeTrace("a\"b\n", run.program, run.trace));
  EXPECT_THAT(text, HasSubstr("\"dur\":999.999,"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json j, ParseJson(text, "trace"));
  EXPECT_EQ(j["otherData"]["scheme"], "a\"b\n");
}

TEST(ChromeTraceTest, RefusesOverlappingSpansAndOtherPrograms) {
  SampleRun run = SimulateSample("1f1b", 2, 2);
  const SampleRun other = SimulateSample("gpipe", 3, 4);
  EXPECT_THAT(ChromeTrace("x", other.program, run.trace),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 devices")));
  run.trace.devices[0].spans[1].begin_ns = 5;
  EXPECT_THAT(ChromeTrace("x", run.program, run.trace),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 0, span 1")));
}

TEST(TimelineSvgTest, HasABoxForEachActionAndALineForEachMessage) {
  const SampleRun run = SimulateSample("1f1b", 4, 8);
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string svg, TimelineSvg("t", "1f1b", run.program, run.trace));
  EXPECT_EQ(Count(svg, "class=\"pl-b\""), 2 * 4 * 8);
  const size_t open = svg.find("<g stroke-width");
  const std::string lines = svg.substr(open, svg.find("</g>") - open);
  EXPECT_EQ(Count(lines, "<line"), 2 * 3 * 8);
  EXPECT_EQ(Count(lines, "dasharray"), 3 * 8);  // gradients
  EXPECT_EQ(Count(svg, "text-anchor=\"end\">device "), 4);
  EXPECT_THAT(svg, HasSubstr("bubble 35.1 %</title>"));
  EXPECT_THAT(svg, HasSubstr("device 3, 3B7: "));
  EXPECT_THAT(svg, HasSubstr(">time [ms]<"));
}

TEST(TimelineSvgTest, ShadesTellADevicesStagesApart) {
  const SampleRun one = SimulateSample("1f1b", 4, 8), two = SimulateSample("chimera", 4, 8);
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string plain, TimelineSvg("t", "x", one.program, one.trace));
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string shaded, TimelineSvg("t", "x", two.program, two.trace));
  const std::string light = absl::StrCat("fill=\"", Hex(Lighten(kBlue, 0.6)), "\"");
  EXPECT_EQ(Count(plain, light), 0);
  EXPECT_EQ(Count(shaded, light), 4 * 4);
  EXPECT_THAT(shaded, HasSubstr("shade: "));
}

TEST(TimelineSvgTest, EscapesTheScheme) {
  const SampleRun run = SimulateSample("1f1b", 1, 1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string svg, TimelineSvg("t", "<&\">", run.program, run.trace));
  EXPECT_THAT(svg, HasSubstr("&lt;&amp;&quot;&gt;: 1 device, 1 micro-batch;"));
  EXPECT_THAT(svg, Not(HasSubstr("<&")));
}

TEST(TimelineSvgTest, LargeOnes) {
  const SampleRun run = SimulateSample("1f1b", 16, 64);
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::string svg, TimelineSvg("t", "1f1b", run.program, run.trace));
  EXPECT_EQ(Count(svg, "class=\"pl-b\""), 2 * 16 * 64);
  // Every box has its number, 63 too.
  EXPECT_EQ(Count(svg, ">63</text>"), 2 * 16);
  EXPECT_THAT(svg, HasSubstr("1920 messages not drawn"));
  const SampleRun huge = SimulateSample("gpipe", 4, 3000);
  EXPECT_THAT(TimelineSvg("t", "x", huge.program, huge.trace),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("24000 actions")));
}

TEST(ChartTest, GapsAndFlatLines) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string broken = LineChartSvg({}, {{"a", {1, 2, nan, 2, 3}}});
  EXPECT_EQ(Count(broken, "<polyline"), 2);
  EXPECT_THAT(broken, HasSubstr("a (1 not finite)"));
  for (const std::vector<Series>& odd : {std::vector<Series>{},
                                         {{"empty", {}}},
                                         {{"flat", {2, 2}}},
                                         {{"one", {5}}},
                                         {{"zero", {0, 0}}}}) {
    const std::string svg = LineChartSvg({}, odd);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(ChartTest, LinesThatCoincideStayVisible) {
  const std::string svg = LineChartSvg({}, {{"a", {1, 2}}, {"b", {1, 2}}, {"c", {1, 2}}});
  EXPECT_LT(svg.find("stroke-width=\"5\""), svg.find("stroke-width=\"3.4\""));
  EXPECT_LT(svg.find("stroke-width=\"3.4\""), svg.find("stroke-width=\"1.8\""));
}

TEST(TicksTest, AreRoundAndCoverTheRange) {
  const Ticks t = NiceTicks(0, 37.4, 8);
  EXPECT_EQ(t.values, (std::vector<double>{0, 5, 10, 15, 20, 25, 30, 35}));
  EXPECT_EQ(t.decimals, 0);
  const Ticks small = NiceTicks(0.1, 0.35, 5);
  EXPECT_EQ(small.decimals, 2);
  EXPECT_NEAR(small.values.front(), 0.1, 1e-12);
  EXPECT_NEAR(small.values.back(), 0.35, 1e-12);
  EXPECT_EQ(NiceTicks(3, 3, 5).values.size(), 1u);
}

TEST(ColourTest, InkReadsOnItsBackground) {
  EXPECT_EQ(InkOn(kBlue), "#fff");
  EXPECT_EQ(InkOn(kOrange), "#000");
  EXPECT_EQ(Hex(Lighten({0, 100, 255}, 0.5)), "#80b2ff");
}

}  // namespace
}  // namespace pipelab
