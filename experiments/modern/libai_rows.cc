#include "experiments/modern/libai_rows.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/predict/gpt_run.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/recipes/padded_vocabulary.h"
#include "pipelines/step/execution.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr double kLibaiTime =
    0.08;  // the bar, which was set before these rows were first predicted

absl::StatusOr<StepPrediction> PredictLibaiRow(const MeasuredRow& row, const ClusterSpec& on) {
  GptRun run = RunOfRow(row, PaddedVocabulary(kGpt2Vocabulary, row.tensor));
  run.config.overlap_pipeline = true;  // calls say what overlaps
  run.config.execution = kAllExecutionParts;
  run.sums_beside_weights = true;
  return SimulateRun(run, on);
}

// The row takes as long as was measured where all efficiencies are multiplied by this. It is found
// by bisection, since the time falls with it.
absl::StatusOr<double> Factor(const MeasuredRow& row, const ClusterSpec& cluster) {
  double low = 0.1, high = 2;
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p,
                             PredictLibaiRow(row, WithEfficiency(cluster, middle)));
    (ToMilliseconds(p.step_time) > *row.milliseconds ? low : high) = middle;
  }
  return (low + high) / 2;
}

// A quad's ring uses all four links of a GPU, where a ring of two has what is between them: ranks 0
// and 1 have one link, 2 and 3 have two (DGX-1 system architecture), and the slower pair counts.
ClusterSpec WithRingsOfTwo(ClusterSpec cluster) {
  ClusterLevel& quad = cluster.levels.front();
  RingConnection two = quad.rings.front();
  two.ranks = 2;
  two.connection.bandwidth = quad.connection.bandwidth;
  quad.rings.front().ranks = quad.size;
  quad.rings.insert(quad.rings.begin(), std::move(two));
  return cluster;
}

ClusterSpec WithNetwork(ClusterSpec cluster, BytesPerSecond bandwidth, const char* source) {
  cluster.levels.back().connection.bandwidth = {bandwidth, source};
  return cluster;
}

}  // namespace

absl::StatusOr<std::vector<MeasuredRow>> ParseLibaiRows(absl::string_view text,
                                                        absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable table,
                           CsvTable::Parse(text, what,
                                           {"gpus", "D", "T", "P", "micro_batch", "global_batch",
                                            "recompute", "samples_per_s"}));
  std::string rows =
      "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,"
      "tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms),recompute\n";
  int line = 1;
  for (const std::vector<std::string>& row : table.rows()) {
    ++line;
    const auto cell = [&](const char* column) { return row[table.Column(column)]; };
    double batch = 0, rate = 0;
    if (!absl::SimpleAtod(cell("samples_per_s"), &rate) || !(rate > 0)) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": line ", line, ": samples_per_s: \"",
                                                     cell("samples_per_s"),
                                                     "\": must be a number above 0"));
    }
    // The reader of the other columns names a cell that is no number.
    const bool number = absl::SimpleAtod(cell("global_batch"), &batch);
    absl::StrAppend(&rows, cell("gpus"), ",", cell("global_batch"), ",", cell("micro_batch"),
                    ",1024,16,24,1024,", cell("T"), ",", cell("D"), ",", cell("P"), ",",
                    number ? 1e3 * batch / rate : 1, ",", cell("recompute"), "\n");
  }
  PIPELAB_ASSIGN_OR_RETURN(MeasuredRows parsed, ParseMeasuredRows(rows, what));
  return std::move(parsed.rows);
}

absl::StatusOr<LibaiSteps> PredictLibai(const std::vector<MeasuredRow>& rows) {
  const auto alone = [](const MeasuredRow& row) { return row.gpus == 1; };
  const auto calibrating = std::find_if(rows.begin(), rows.end(), alone);
  if (std::count_if(rows.begin(), rows.end(), alone) != 1) {
    return absl::InvalidArgumentError("one row must have one GPU, to calibrate the machine by");
  }
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec dgx, LoadCluster("--cluster", "dgx1-v100"));
  dgx = WithRingsOfTwo(std::move(dgx));
  LibaiSteps all;
  PIPELAB_ASSIGN_OR_RETURN(all.factor, Factor(*calibrating, dgx));
  const ClusterSpec node = WithEfficiency(dgx, all.factor);
  const MachineRange machine = {
      WithNetwork(node, BytesPerSecond(100e9 / 8), "Amazon EC2 P3dn: 100 Gbit/s"), node,
      WithNetwork(node, BytesPerSecond(25e9 / 8), "Amazon EC2 P3: 25 Gbit/s")};
  for (const MeasuredRow& row : rows) {
    if (alone(row)) continue;
    PIPELAB_ASSIGN_OR_RETURN(
        RowStep s, PredictRow(absl::StrCat("D", row.data, " T", row.tensor, " P", row.pipeline,
                                           " b", row.micro_batch),
                              *row.milliseconds / 1e3, machine,
                              [&](const ClusterSpec& on) { return PredictLibaiRow(row, on); }));
    all.steps.push_back(std::move(s));
  }
  return all;
}

Table LibaiTable(const std::vector<RowStep>& steps) {
  return RowTable("libai", "Megatron-LM of January 2022 on V100s of a cloud (LiBai's rows)", steps);
}

Claim LibaiClaim(const std::vector<RowStep>& steps) {
  return MedianClaim(
      OwnClaim("libai.time",
               "Megatron-LM's steps on V100s that LiBai's authors measured, the median error"),
      steps, kLibaiTime, "the cloud's network is not printed");
}

}  // namespace pipelab
