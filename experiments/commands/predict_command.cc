// pipelab predict: times of training iterations of a GPT on a cluster, row by row.
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/validation/predict_rows.h"
#include "experiments/validation/rows_file.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, cluster);
ABSL_FLAG(std::string, rows, "", "CSV file of training iterations (docs/validation.md)");
ABSL_FLAG(std::string, csv_out, "-", "file of the same rows with predicted_ms; -: stdout");
ABSL_FLAG(int, vocabulary, 50257, "words of the model; each tensor-parallel device has its part");

namespace pipelab {
namespace {

// A name that there is not is the command line's fault, what is wrong in a file is not.
absl::StatusOr<ClusterSpec> ClusterOfFlag(const std::string& word) {
  absl::StatusOr<ClusterSpec> cluster = LoadCluster("--cluster", word);
  if (cluster.ok()) return cluster;
  const bool file = absl::StrContains(word, "/") || absl::EndsWith(word, ".json");
  return absl::Status(
      file ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInvalidArgument,
      cluster.status().message());
}

}  // namespace

absl::Status PredictCommand(const Words& words) {
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "': predict takes options alone: --rows=FILE.csv"));
  }
  const int vocabulary = absl::GetFlag(FLAGS_vocabulary);
  if (vocabulary < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--vocabulary=", vocabulary, ": must be at least 1"));
  }
  const std::string path = absl::GetFlag(FLAGS_rows), name = absl::GetFlag(FLAGS_cluster);
  if (name.empty()) {
    return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-a100");
  }
  PIPELAB_ASSIGN_OR_RETURN(const MeasuredRows rows, ReadMeasuredRows("--rows", path));
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterOfFlag(name));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> predicted,
                           PredictRows(rows, cluster, absl::StrCat("--rows=", path), vocabulary));
  std::vector<std::string> cells;
  for (double ms : predicted) cells.push_back(absl::StrFormat("%.6f", ms));
  return WriteOutput("--csv_out", absl::GetFlag(FLAGS_csv_out),
                     WithColumn(rows, "predicted_ms", cells));
}

}  // namespace pipelab
