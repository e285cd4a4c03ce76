// Every kernel case on the device of this build, a line each: parity with the reference, and the
// same bits at other addresses. Gradients are cases like any other: the reference's are held to
// finite differences (kernels/cases:gradient_test).
//
//   bazel run --config=cuda //kernels/cuda:parity -- --json=parity.json
//   bazel run //kernels/cuda:parity                         # on the emulated device
//
// Exit status: 0, all are right; 1, some are not; 3, no CUDA device, and every case is skipped.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cuda/case_runner.h"
#include "kernels/cuda/devices.h"

ABSL_FLAG(std::string, json, "", "write the results here too");
ABSL_FLAG(std::string, only, "", "cases whose names contain this");
ABSL_FLAG(bool, graphs, false, "every launch by a CUDA graph, three times");
ABSL_FLAG(bool, small, false, "the small cases alone, for compute-sanitizer");

namespace pipelab {
namespace {

constexpr int kNoDevice = 3;

struct Line {
  std::string name, outcome, text;
  double share = 0;
};

std::string ToJson(const std::vector<Line>& lines) {
  std::string text = "{\"cases\": [\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& l = lines[i];
    absl::StrAppendFormat(&text,
                          "  {\"name\": \"%s\", \"outcome\": \"%s\", \"share_of_bound\": %.3g}%s\n",
                          l.name, l.outcome, l.share, i + 1 < lines.size() ? "," : "");
  }
  return absl::StrCat(text, "]}\n");
}

std::vector<KernelCase> WantedCases() {
  std::vector<KernelCase> wanted;
  for (KernelCase& c : CheckedCases(absl::GetFlag(FLAGS_small))) {
    if (c.name.find(absl::GetFlag(FLAGS_only)) != std::string::npos) wanted.push_back(std::move(c));
  }
  return wanted;
}

Line Check(const KernelCase& c, const std::shared_ptr<gpu::Device>& device) {
  Line line;
  line.name = c.name;
  // The first launch is plain, the second is captured, the third replayed.
  for (int time = 0; time < 2 && absl::GetFlag(FLAGS_graphs); ++time) RunOnDevice(c, device);
  const CaseResult result = RunOnDevice(c, device);
  line.share = result.share;
  line.text = result.text;
  bool ok = result.ok;
  if (ok && BitsOnDevice(c, device, 0) != BitsOnDevice(c, device, 1)) {
    ok = false;
    line.text = "other bits at another address";
  }
  line.outcome = ok ? "ok" : "WRONG";
  return line;
}

int Main() {
  const std::vector<KernelCase> cases = WantedCases();
  gpu::DeviceOptions options;
  options.graphs = absl::GetFlag(FLAGS_graphs);
  options.graph_limits.fewest_pieces = 1;
  const auto devices = gpu::MakeDevices(gpu::DefaultDeviceName(), 1, options);
  std::vector<Line> lines;
  int wrong = 0;
  for (const KernelCase& c : cases) {
    if (!devices.ok()) {
      lines.push_back({c.name, "skipped: no CUDA device", "", 0});
    } else {
      lines.push_back(Check(c, devices->front()));
    }
    const Line& line = lines.back();
    wrong += line.outcome == "WRONG";
    std::cout << absl::StrFormat(
        "%-60s %s %s\n", line.name, line.outcome,
        line.share > 0 ? absl::StrFormat("%.2f of the bound", line.share) : line.text);
    if (line.outcome == "WRONG") std::cout << "    " << line.text << "\n";
  }
  if (!absl::GetFlag(FLAGS_json).empty()) {
    std::ofstream(absl::GetFlag(FLAGS_json)) << ToJson(lines);
  }
  if (!devices.ok()) {
    std::cout << devices.status().message() << "\n";
    return kNoDevice;
  }
  std::cout << cases.size() - wrong << " of " << cases.size() << " cases are right on the device "
            << gpu::DefaultDeviceName() << "\n";
  const gpu::GraphCounts counts = devices->front()->graph_counts();
  if (options.graphs) {
    std::cout << "graphs: " << counts.captured << " captured, " << counts.replayed << " replayed, "
              << counts.changed << " changed, " << counts.refused << " refused\n";
  }
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return pipelab::Main();
}
