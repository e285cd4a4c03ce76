// pipelab predict: times of training iterations of a GPT on a cluster, row by row.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/step_input.h"
#include "experiments/flags/option_checks.h"
#include "experiments/flags/output.h"
#include "experiments/predict/measured_rows.h"
#include "experiments/predict/predict_rows.h"
#include "experiments/simulate/user_file.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_FLAG(std::string, rows, "", "CSV file of training iterations (docs/validation.md); -: stdin");
ABSL_DECLARE_FLAG(std::string, cluster);  // step_input.cc
ABSL_FLAG(std::string, csv_out, "-", "file of the same rows with the predictions; -: stdout");
ABSL_FLAG(int, vocabulary, 50257,
          "vocabulary size, for rows without one; each tensor-parallel device has its part");

namespace pipelab {
namespace {

const std::vector<std::string> kTitles = {"predicted_ms", "memory_gib", "fits",
                                          "tflops_all_attention", "tflops_causal_attention"};

// What fits leaves --reserve of a device's memory.
absl::StatusOr<std::vector<std::string>> CellsOf(const RowPrediction& p) {
  PIPELAB_ASSIGN_OR_RETURN(const Bytes usable, UsableMemory(p.device_memory));
  return std::vector<std::string>{
      absl::StrFormat("%.6f", p.milliseconds),
      absl::StrFormat("%.3f", static_cast<double>(p.memory.value()) / (1 << 30)),
      p.memory <= usable ? "yes" : "no", absl::StrFormat("%.3f", p.tflops_all_pairs),
      absl::StrFormat("%.3f", p.tflops_causal)};
}

}  // namespace

absl::Status PredictCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(CheckOptionsAlone(words, "predict", ": --rows=FILE.csv"));
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
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadCluster("--cluster", name));
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadUserFile("--rows", path));
  PIPELAB_ASSIGN_OR_RETURN(const MeasuredRows rows,
                           FaultOfFile(ParseMeasuredRows(text, absl::StrCat("--rows=", path))));
  const auto predict = [&](const ClusterSpec& machine) {
    return PredictEachRow(rows, machine, absl::StrCat("--rows=", path), vocabulary);
  };
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<RowPrediction> predicted, predict(cluster));
  std::vector<std::string> titles = kTitles;
  std::vector<std::vector<std::string>> cells;
  for (const RowPrediction& p : predicted) {
    PIPELAB_ASSIGN_OR_RETURN(cells.emplace_back(), CellsOf(p));
  }
  if (const std::string warning = CalibrationWarning(cluster); !warning.empty()) {
    std::fprintf(stderr, "Note: %s.\n", warning.c_str());
    const EfficiencyRange range = EfficiencyRangeOf(cluster);
    for (const auto& [title, times] :
         {std::make_pair("best_ms", range.best), std::make_pair("worst_ms", range.worst)}) {
      titles.push_back(title);
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<RowPrediction> of_range,
                               predict(WithEfficiency(cluster, times)));
      for (size_t i = 0; i < cells.size(); ++i) {
        cells[i].push_back(absl::StrFormat("%.6f", of_range[i].milliseconds));
      }
    }
  }
  return WriteOutput("--csv_out", absl::GetFlag(FLAGS_csv_out), WithColumns(rows, titles, cells));
}

}  // namespace pipelab
