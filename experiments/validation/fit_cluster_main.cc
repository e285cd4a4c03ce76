// bazel run -c opt //experiments:fit_cluster -- --rows=FILE.csv --cluster=dgx-a100 --json_out=FILE
//
// Writes the cluster's specification with those values that no data sheet has fitted to a third of
// the rows (docs/validation.md).
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/output.h"
#include "experiments/predict/rows_file.h"
#include "experiments/validation/fit_cluster.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, rows, "", "CSV file of measured iterations (docs/validation.md)");
ABSL_FLAG(std::string, cluster, "dgx-a100", "cluster to begin with: a name or a file");
ABSL_FLAG(std::string, json_out, "-", "file of the fitted specification; -: stdout");
ABSL_FLAG(std::string, source, "calibrated: every third of the rows",
          "source of the fitted values");
ABSL_FLAG(int, steps, 1000, "steps of the search");
ABSL_FLAG(int, seed, 1, "seed of the search");

namespace pipelab {
namespace {

absl::Status Run(const std::vector<std::string>& words) {
  if (!words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "': not an option; options begin with --"));
  }
  if (absl::GetFlag(FLAGS_steps) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--steps=", absl::GetFlag(FLAGS_steps), ": must not be negative"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const MeasuredRows rows,
                           ReadMeasuredRows("--rows", absl::GetFlag(FLAGS_rows)));
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster,
                           LoadCluster("--cluster", absl::GetFlag(FLAGS_cluster)));
  FitOptions options;
  options.steps = absl::GetFlag(FLAGS_steps);
  options.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed));
  options.source = absl::GetFlag(FLAGS_source);
  options.progress = [](int step, double error) {
    if (step % 50 == 49) std::fprintf(stderr, "step %d: %.3f %%\n", step + 1, 100 * error);
  };
  PIPELAB_ASSIGN_OR_RETURN(const FittedCluster fitted, FitCluster(cluster, rows, options));
  std::fprintf(stderr,
               "mean error of the calibration rows, 20 %% at most each: %.2f %% -> %.2f %%\n",
               100 * fitted.first_error, 100 * fitted.error);
  return WriteOutput("--json_out", absl::GetFlag(FLAGS_json_out), ClusterToJson(fitted.cluster));
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  return pipelab::RunMain(
      argc, argv, "//experiments:fit_cluster",
      "Fits a cluster's specification to a third of measured training iterations.", pipelab::Run);
}
