#include "experiments/modern/measured_layouts.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/modern/step_parts.h"
#include "experiments/predict/gpt_run.h"
#include "experiments/predict/measured_rows.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kNodeRows[] = "a100_gpt_iteration_times.csv";

std::string RequestOf(const ModernResult& r) {
  const ModernRow& row = *r.row;
  return absl::StrCat(row.model, r.further ? " with its further token" : "", ", ", row.precision,
                      ", ", row.gpus, " ", row.gpu, ", batch ", row.batch, " of ", row.tokens,
                      " tokens");
}

std::string WordsOf(const ModernRow& r) {
  return absl::StrCat("T", r.tensor, " P", r.pipeline, " C", r.context, " E", r.expert, " V",
                      r.virtual_stages, " b", r.micro_batch,
                      r.sharding.empty() ? "" : absl::StrCat(" ", r.sharding),
                      r.recompute.empty() ? "" : absl::StrCat(" ", r.recompute));
}

std::string WordsOf(const MeasuredRow& r) {
  return absl::StrCat("T", r.tensor, " P", r.pipeline, " D", r.data, " b", r.micro_batch);
}

absl::StatusOr<std::vector<StepPart>> PartsOf(const ModernResult& r, const ModernData& data,
                                              const ModernMachines& machines) {
  PIPELAB_ASSIGN_OR_RETURN(ModernStep step, StepOfRow(*r.row, data.models, machines));
  PIPELAB_ASSIGN_OR_RETURN(const ModernStepModel model, ModernStepModel::Of(step));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, model.Predict(step));
  return SecondsOfParts(model.On(step), p);
}

}  // namespace

std::vector<MeasuredLayout> ModernLayouts(const ModernData& data, const ModernMachines& machines,
                                          const ModernResults& all) {
  std::vector<MeasuredLayout> runs;
  for (const ModernResult& r : all) {
    if (!r.judged()) continue;
    MeasuredLayout& run = runs.emplace_back();
    run.source = r.row->group;
    run.request = RequestOf(r);
    run.layout = r.configuration;
    run.words = WordsOf(*r.row);
    run.measured = *r.row->Seconds();
    run.predicted = r.seconds;
    run.listed = IsListed(r.memory, r.device_memory);
    run.parts = [&] { return PartsOf(r, data, machines); };
  }
  return runs;
}

absl::StatusOr<std::vector<MeasuredLayout>> NodeLayouts(const std::string& folder) {
  const std::string path = JoinPath(folder, kNodeRows);
  std::vector<MeasuredLayout> runs;
  if (!PathExists(path)) return runs;
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  PIPELAB_ASSIGN_OR_RETURN(const MeasuredRows rows,
                           FaultOfFile(ParseMeasuredRows(text, kNodeRows)));
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec read, LoadCluster("--cluster", "dgx-a100"));
  const auto cluster = std::make_shared<const ClusterSpec>(std::move(read));
  int64_t place = 0;
  for (const MeasuredRow& row : rows.rows) {
    if (!row.milliseconds.has_value() || place++ % kCalibratingStride == 0) continue;
    MeasuredLayout& run = runs.emplace_back();
    run.source = "vtrain";
    run.request = absl::StrCat("GPT of ", row.layers, " blocks ", row.hidden, " wide, ", row.gpus,
                               " A100, batch ", row.batch, " of ", row.tokens, " tokens");
    run.layout = run.words = WordsOf(row);
    run.measured = *row.milliseconds / 1e3;
    const GptRun gpt = RunOfRow(row, kGpt2Vocabulary);
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateRun(gpt, *cluster));
    run.predicted = ToSeconds(p.step_time);
    run.listed = IsListed(p.largest_device, p.step.device_memory);
    run.parts = [gpt, cluster]() -> absl::StatusOr<std::vector<StepPart>> {
      std::vector<StepPart> parts;
      PIPELAB_RETURN_IF_ERROR(
          WithSimulatedRun(gpt, *cluster, [&](const StepModel& on, const StepPrediction& p) {
            PIPELAB_ASSIGN_OR_RETURN(parts, SecondsOfParts(on, p));
            return absl::OkStatus();
          }));
      return parts;
    };
  }
  return runs;
}

}  // namespace pipelab
