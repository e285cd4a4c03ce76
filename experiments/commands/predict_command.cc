// pipelab predict: times of training iterations of a GPT on a cluster, row by row.
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/user_file.h"
#include "experiments/option_checks.h"
#include "experiments/validation/measured_rows.h"
#include "experiments/validation/predict_rows.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, rows, "", "CSV file of training iterations (docs/validation.md); -: stdin");
ABSL_DECLARE_FLAG(std::string, cluster);  // step_input.cc
ABSL_FLAG(std::string, csv_out, "-", "file of the same rows with predicted_ms; -: stdout");
ABSL_FLAG(int, vocabulary, 50257, "words of the model; each tensor-parallel device has its part");

namespace pipelab {

absl::Status PredictCommand(const Words& words) {
  if (words.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "': predict takes options alone: --rows=FILE.csv"));
  }
  const int vocabulary = absl::GetFlag(FLAGS_vocabulary);
  PIPELAB_RETURN_IF_ERROR(CheckRange("--vocabulary", vocabulary, 1, 1 << 20));
  const std::string path = absl::GetFlag(FLAGS_rows);
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "--rows: missing; a CSV file of training iterations (docs/validation.md), or -");
  }
  const std::string name = absl::GetFlag(FLAGS_cluster);
  if (name.empty()) {
    return absl::InvalidArgumentError("--cluster: missing; a name or a file, such as dgx-a100");
  }
  const absl::StatusOr<ClusterSpec> loaded = LoadCluster("--cluster", name);
  if (!loaded.ok()) return FaultOfWord(name, loaded.status());
  const ClusterSpec& cluster = *loaded;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--rows", path));
  const absl::StatusOr<MeasuredRows> read = ParseMeasuredRows(text, absl::StrCat("--rows=", path));
  if (!read.ok()) return FaultOfFile(read.status());
  const MeasuredRows& rows = *read;
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<double> predicted,
                           PredictRows(rows, cluster, absl::StrCat("--rows=", path), vocabulary));
  std::vector<std::string> cells;
  for (double ms : predicted) cells.push_back(absl::StrFormat("%.6f", ms));
  return WriteOutput("--csv_out", absl::GetFlag(FLAGS_csv_out),
                     WithColumn(rows, "predicted_ms", cells));
}

}  // namespace pipelab
