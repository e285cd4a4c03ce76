// tools/bazel run //experiments:calibrate -- --out FILE.json
//
// Measures this machine and writes its cluster specification, which every tool takes as --cluster.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "experiments/calibration/calibration.h"
#include "experiments/calibration/rate_table.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/option_checks.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, out, "",
          "the file to write, NAME.json; empty: results/calibrate/measured.json of the checkout");
ABSL_FLAG(int, rounds, 8, "times that each kernel is measured");
ABSL_FLAG(int, seconds, 90, "no round but the first begins after this time");
ABSL_FLAG(bool, quick, false, "a few kernels, once: some seconds, for a first look");

namespace pipelab {
namespace {

// Refuses what cannot become a file before anything is measured.
absl::StatusOr<std::string> OutputFile() {
  const std::string out = absl::GetFlag(FLAGS_out);
  std::string path = ResolveOutputPath(out, "calibrate");
  if (out.empty()) path = JoinPath(path, "measured.json");
  // Other words name the clusters that come with the project.
  if (!absl::EndsWith(path, ".json") || PathExists(path + "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--out=", out, ": not a file; give one that ends in .json"));
  }
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  PIPELAB_RETURN_IF_ERROR(CheckWritableDirectory("--out", folder.empty() ? "." : folder));
  return path;
}

absl::StatusOr<CalibrationOptions> OptionsFromFlags() {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--rounds", absl::GetFlag(FLAGS_rounds), 1, 1000));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--seconds", absl::GetFlag(FLAGS_seconds), 1, 86400));
  if (absl::GetFlag(FLAGS_quick)) return QuickCalibration();
  CalibrationOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.limit = absl::Seconds(absl::GetFlag(FLAGS_seconds));
  return options;
}

absl::Status Run(const std::vector<std::string>& words) {
  if (!words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "': not an option; options begin with --"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const CalibrationOptions options, OptionsFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(const std::string path, OutputFile());
  PIPELAB_ASSIGN_OR_RETURN(const MachineMeasurements measured, MeasureMachine(options));
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, SpecificationOf(measured));
  PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(path, ClusterToJson(cluster)));
  std::printf("%s\nspecification: %s\n", RateTable(cluster).ToTerminal().c_str(), path.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  return pipelab::RunMain(
      argc, argv, "//experiments:calibrate",
      "Measures this machine's kernels by kind and size, its memory and its messages between "
      "threads, and writes a cluster specification of it, which every tool takes as --cluster.",
      pipelab::Run);
}
