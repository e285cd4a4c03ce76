// Small outputs against committed files, byte by byte.
//
//   bazel run //experiments/report:golden_test -- --update      writes testdata/
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "experiments/report/chart_svg.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/sample.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "glog/logging.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"

namespace pipelab {
namespace {

bool update = false;

void ExpectGolden(absl::string_view name, const std::string& text) {
  const std::string path = absl::StrCat("experiments/report/testdata/", name);
  if (update) {
    const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    ASSERT_NE(workspace, nullptr) << "--update works with `bazel run`";
    const absl::Status status = WriteFileAtomically(JoinPath(workspace, path), text);
    ASSERT_TRUE(status.ok()) << status;
    return;
  }
  const auto golden = ReadFile(path);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(text, *golden) << path << " differs; if that is meant: "
                           << "bazel run //experiments/report:golden_test -- --update";
}

const SampleRun& Small() {
  static const SampleRun* run = new SampleRun(SimulateSample("1f1b", 2, 2));
  return *run;
}

TEST(GoldenTest, TimelineSvg) {
  const auto svg = TimelineSvg("golden", "1f1b", Small().program, Small().trace);
  ASSERT_TRUE(svg.ok()) << svg.status();
  ExpectGolden("timeline.svg", *svg);
}

TEST(GoldenTest, TimelineText) { ExpectGolden("timeline.txt", TimelineText(Small().trace, 80)); }

TEST(GoldenTest, ChromeTrace) {
  const auto json = ChromeTrace("1f1b", Small().program, Small().trace);
  ASSERT_TRUE(json.ok()) << json.status();
  ExpectGolden("trace.json", *json);
}

TEST(GoldenTest, LossCurves) {
  ChartOptions options;
  options.title = "Loss";
  options.x_label = "step";
  options.y_label = "loss [nats/token]";
  ExpectGolden("curves.svg",
               LineChartSvg(options, {{"serial", {4, 3, 2.5}}, {"1f1b", {4, 3.25, 2.5}}}));
}

TEST(GoldenTest, FilesOfAReport) {
  const auto files = SampleReport().Files();
  ASSERT_TRUE(files.ok()) << files.status();
  for (const auto& [name, text] : *files) {
    if (name == "config.json" || name == "env.json" || name == "run.json" ||
        name == "records.csv" || name == "table_schemes.csv" || name == "schedule_gpipe.csv" ||
        name == "report.md") {
      ExpectGolden(name, text);
    }
  }
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    CHECK_EQ(absl::string_view(argv[i]), "--update") << "the only option of this test";
    pipelab::update = true;
  }
  return RUN_ALL_TESTS();
}
