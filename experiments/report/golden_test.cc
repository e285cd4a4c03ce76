// Small outputs against committed files, byte by byte.
//
//   bazel run //experiments/report:report_test -- --update      writes testdata/
#include "experiments/report/golden.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "experiments/report/chart_svg.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/sample.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

std::string Golden(absl::string_view name) {
  return absl::StrCat("experiments/report/testdata/", name);
}

const SampleRun& Small() {
  static const SampleRun* run = new SampleRun(SimulateSample("1f1b", 2, 2));
  return *run;
}

TEST(GoldenTest, TimelineSvg) {
  const auto svg = TimelineSvg("golden", "1f1b", Small().program, Small().trace);
  ASSERT_TRUE(svg.ok()) << svg.status();
  ExpectGolden(Golden("timeline.svg"), *svg);
}

TEST(GoldenTest, TimelineText) {
  ExpectGolden(Golden("timeline.txt"), TimelineText(Small().program, Small().trace, 80));
}

TEST(GoldenTest, ChromeTrace) {
  const auto json = ChromeTrace("1f1b", Small().program, Small().trace);
  ASSERT_TRUE(json.ok()) << json.status();
  ExpectGolden(Golden("trace.json"), *json);
}

TEST(GoldenTest, LossCurves) {
  ChartOptions options;
  options.title = "Loss";
  options.x_label = "step";
  options.y_label = "loss [nats/token]";
  ExpectGolden(Golden("curves.svg"),
               LineChartSvg(options, {{"serial", {4, 3, 2.5}}, {"1f1b", {4, 3.25, 2.5}}}));
}

TEST(GoldenTest, FilesOfAReport) {
  const auto files = SampleReport().Files();
  ASSERT_TRUE(files.ok()) << files.status();
  for (const auto& [name, text] : *files) {
    if (name == "config.json" || name == "env.json" || name == "run.json" ||
        name == "records.csv" || name == "table_schemes.csv" || name == "schedule_gpipe.csv" ||
        name == "report.md") {
      ExpectGolden(Golden(name), text);
    }
  }
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) { return pipelab::GoldenMain(argc, argv); }
