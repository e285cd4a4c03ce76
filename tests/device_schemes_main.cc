// Every scheme on the devices of this build, in each type of activations, a line each.
//
//   bazel run --config=cuda //tests:device_schemes -- --json=schemes.json
//
// Exit status: 0, all are right; 1, some are not; 3, no CUDA device, and all are skipped.
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "kernels/cuda/devices.h"
#include "tests/device_schemes.h"

ABSL_FLAG(std::string, json, "", "write the results here too");
ABSL_FLAG(bool, graphs, false, "by CUDA graphs where work repeats");
ABSL_FLAG(bool, quick, false, "a few schemes of each kind, for compute-sanitizer");

namespace pipelab {
namespace {

int Main() {
  gpu::DeviceOptions options;
  options.graphs = absl::GetFlag(FLAGS_graphs);
  const auto devices = gpu::MakeDevices(gpu::DefaultDeviceName(), 1, options);
  std::vector<SchemeOutcome> outcomes;
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
    options.format.activations = type;
    std::vector<SchemeOutcome> of_type =
        devices.ok() ? CheckSchemes(gpu::CudaDevices(gpu::DefaultDeviceName(), options),
                                    absl::GetFlag(FLAGS_quick))
                     : SkippedSchemes("no CUDA device");
    for (SchemeOutcome& o : of_type) {
      o.name = absl::StrCat(DataTypeName(type), ": ", o.name);
      outcomes.push_back(std::move(o));
    }
  }
  std::string json = "{\"schemes\": [\n";
  bool wrong = false;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const SchemeOutcome& o = outcomes[i];
    std::cout << absl::StrFormat("%-55s %s: %s\n", o.name, o.outcome, o.text);
    wrong |= o.outcome == "WRONG";
    absl::StrAppendFormat(&json, "  {\"name\": \"%s\", \"outcome\": \"%s\", \"text\": \"%s\"}%s\n",
                          o.name, o.outcome,
                          absl::StrReplaceAll(o.text, {{"\"", "'"}, {"\n", " "}}),
                          i + 1 < outcomes.size() ? "," : "");
  }
  if (!absl::GetFlag(FLAGS_json).empty()) {
    std::ofstream(absl::GetFlag(FLAGS_json)) << json << "]}\n";
  }
  if (!devices.ok()) {
    std::cout << devices.status().message() << "\n";
    return 3;
  }
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return pipelab::Main();
}
