#include "experiments/modern/mlperf_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/report/median.h"
#include "tools/base/csv.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// The bars, which were set before these rows were first predicted.
constexpr double kStep = 0.05, kSlope = 0.03, kFewest = 0.04;

// step = slope x micro-batches + intercept, by least squares.
struct Line {
  double slope = 0, intercept = 0;
};

template <class Seconds>
Line LineOf(const std::vector<const MlperfStep*>& steps, const Seconds& seconds) {
  const auto count = static_cast<double>(steps.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const MlperfStep* s : steps) {
    x += s->micro_batches;
    y += seconds(*s);
    xx += s->micro_batches * s->micro_batches;
    xy += s->micro_batches * seconds(*s);
  }
  Line line;
  line.slope = (count * xy - x * y) / (count * xx - x * x);
  line.intercept = (y - line.slope * x) / count;
  return line;
}

struct MachineLines {
  std::vector<const MlperfStep*> steps;  // by micro-batches
  Line measured, predicted;

  double slope_error() const { return predicted.slope / measured.slope - 1; }
};

// By GPU, of those with rows of several numbers of micro-batches.
std::map<std::string, MachineLines> LinesOf(const std::vector<MlperfStep>& steps) {
  std::map<std::string, MachineLines> machines;
  for (const MlperfStep& s : steps) machines[s.row.gpu].steps.push_back(&s);
  for (auto it = machines.begin(); it != machines.end();) {
    MachineLines& m = it->second;
    std::sort(m.steps.begin(), m.steps.end(), [](const MlperfStep* a, const MlperfStep* b) {
      return a->micro_batches < b->micro_batches;
    });
    if (m.steps.front()->micro_batches == m.steps.back()->micro_batches) {
      it = machines.erase(it);
      continue;
    }
    m.measured = LineOf(m.steps, [](const MlperfStep& s) { return *s.row.Seconds(); });
    m.predicted = LineOf(m.steps, [](const MlperfStep& s) { return s.seconds; });
    ++it;
  }
  return machines;
}

Claim OfMachines(const char* id, const char* text, double bar,
                 const std::vector<std::pair<std::string, double>>& errors) {
  Claim c = OwnClaim(id, text);
  c.unit = "%";
  if (errors.empty()) {
    NotMade(&c, "no row could be predicted");
    return c;
  }
  double worst = 0;
  std::vector<std::string> words;
  for (const auto& [gpu, error] : errors) {
    if (std::abs(error) > std::abs(worst)) worst = error;
    words.push_back(absl::StrFormat("%s %+.1f %%", gpu, 100 * error));
  }
  Found(&c, Origin::kSimulated, 100 * worst, absl::StrJoin(words, ", "));
  MetIf(&c, std::abs(worst) <= bar, absl::StrFormat("within %.0f %% on each GPU", 100 * bar),
        "one share of measured rates is for all GPUs and types, and it comes from bf16 on H100s");
  return c;
}

}  // namespace

absl::StatusOr<std::vector<ModernRow>> ParseMlperfRows(absl::string_view text,
                                                       absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable table,
                           CsvTable::Parse(text, what,
                                           {"version", "system", "gpu", "gpus", "tp", "pp", "vp",
                                            "cp", "gbs", "seq", "precision", "median_step_s"}));
  std::string rows =
      "id,tag,system,gpu,precision,model,recompute,fsdp,gpus,seq,gbs,mbs,tp,pp,cp,ep,vp,kernels,"
      "tokens_per_s_per_gpu,tflops_per_gpu,step_s,notes\n";
  for (const std::vector<std::string>& row : table.rows()) {
    const auto cell = [&](const char* column) { return row[table.Column(column)]; };
    const bool graphs = cell("gpu") == "GB200";
    absl::StrAppend(&rows, "mlperf-", cell("version"), "-", cell("system"), ",read,MLPerf ",
                    cell("version"), ",", cell("gpu"), ",",
                    absl::AsciiStrToUpper(cell("precision")), ",llama3.1-405b,none,0,",
                    cell("gpus"), ",", cell("seq"), ",", cell("gbs"), ",1,", cell("tp"), ",",
                    cell("pp"), ",", cell("cp"), ",,", cell("vp"), ",",
                    graphs ? "cuda_graph=local" : "", ",,,", cell("median_step_s"), ",\n");
  }
  PIPELAB_ASSIGN_OR_RETURN(std::vector<ModernRow> parsed, ParseModernRows(rows, what));
  for (ModernRow& row : parsed) row.whole_pipelines = row.gpu == "GB200";
  return parsed;
}

absl::StatusOr<std::vector<MlperfStep>> PredictMlperf(const std::vector<ModernRow>& rows,
                                                      const std::vector<ModernModel>& models,
                                                      const ModernMachines& machines) {
  std::vector<MlperfStep> steps;
  for (const ModernRow& row : rows) {
    PIPELAB_ASSIGN_OR_RETURN(const ModernStep step, StepOfRow(row, models, machines));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, Predict(step));
    steps.push_back({row, static_cast<double>(step.config.micro_batches), ToSeconds(p.step_time)});
  }
  return steps;
}

Table MlperfTable(const std::vector<MlperfStep>& steps) {
  Table t("mlperf", "MLPerf Training, Llama 3.1 405B in fp8: a step");
  t.AddKey("gpu", "GPU");
  t.AddKey("gpus", "GPUs");
  t.AddColumn({"micro_batches", "micro-batches", "M", "", Origin::kComputed, 0});
  t.AddColumn({"measured", "measured", "", "s", Origin::kPublished, 2});
  t.AddColumn({"predicted", "predicted", "", "s", Origin::kSimulated, 2});
  t.AddColumn({"error", "predicted against measured", "error", "%", Origin::kComputed, 1});
  for (const MlperfStep& s : steps) {
    t.AddRow({Label(s.row.gpu), Label(static_cast<double>(s.row.gpus)), Computed(s.micro_batches),
              Published(*s.row.Seconds(), "read"), Simulated(s.seconds),
              Computed(100 * s.error())});
  }
  return t;
}

Table MlperfLineTable(const std::vector<MlperfStep>& steps) {
  Table t("mlperf_lines", "The same: what a micro-batch takes, and what a step takes besides");
  t.AddKey("gpu", "GPU");
  t.AddColumn({"slope_measured", "measured, a micro-batch", "slope", "ms", Origin::kComputed, 1});
  t.AddColumn({"slope", "predicted", "", "ms", Origin::kComputed, 1});
  t.AddColumn({"slope_error", "error", "", "%", Origin::kComputed, 1});
  t.AddColumn({"rest_measured", "measured, besides", "intercept", "ms", Origin::kComputed, 0});
  t.AddColumn({"rest", "predicted", "", "ms", Origin::kComputed, 0});
  for (const auto& [gpu, m] : LinesOf(steps)) {
    t.AddRow({Label(gpu), Computed(1e3 * m.measured.slope), Computed(1e3 * m.predicted.slope),
              Computed(100 * m.slope_error()), Computed(1e3 * m.measured.intercept),
              Computed(1e3 * m.predicted.intercept)});
  }
  return t;
}

std::vector<Claim> MlperfClaims(const std::vector<MlperfStep>& steps) {
  std::vector<std::pair<std::string, double>> step, slope, fewest;
  for (const auto& [gpu, m] : LinesOf(steps)) {
    std::vector<double> errors;
    for (const MlperfStep* s : m.steps) errors.push_back(s->error());
    step.emplace_back(gpu, MedianOf(errors));
    slope.emplace_back(gpu, m.slope_error());
    fewest.emplace_back(gpu, m.steps.front()->error());
  }
  return {
      OfMachines("mlperf.step", "MLPerf's steps of Llama 3.1 405B, the median by GPU", kStep, step),
      OfMachines("mlperf.slope", "what each further micro-batch takes there", kSlope, slope),
      OfMachines("mlperf.fewest", "the step with the fewest micro-batches there", kFewest, fewest)};
}

}  // namespace pipelab
