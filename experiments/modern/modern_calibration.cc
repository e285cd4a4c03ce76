#include "experiments/modern/modern_calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/types/optional.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

// The largest dense model of a source calibrates its machines. nanotron's runs with pipelines took
// times that no size explains, its largest model's most of all, so it calibrates nothing.
const std::map<std::string, std::string> kCalibrating = {{"dgxc", "nemotron4-340b"},
                                                         {"foundry", "mpt-70b"}};

constexpr char kExperts[] = "models with experts";

// A row that is predicted.
struct PredictedRun {
  const ModernRow* row;
  const ModernModel* of;
  ModernStep step;
};

struct GraphedRun {
  double seconds;  // measured
  ModernStep step;
  ModernStepModel model;
};

// The mean of |log(predicted / measured)| where all efficiencies are times `factor`; none where no
// step can be predicted.
absl::optional<double> ErrorWith(const std::vector<GraphedRun>& runs, double factor) {
  double sum = 0;
  for (const GraphedRun& run : runs) {
    ModernStep changed = run.step;
    changed.cluster = WithEfficiency(run.step.cluster, factor);
    const absl::StatusOr<StepPrediction> p = run.model.Predict(changed);
    if (!p.ok()) return absl::nullopt;
    sum += std::abs(std::log(ToSeconds(p->step_time) / run.seconds));
  }
  return sum / static_cast<double>(runs.size());
}

bool IsDenseCalibration(const ModernRow& row) {
  const auto model = kCalibrating.find(row.group);
  return model != kCalibrating.end() && model->second == row.model;
}

// And dgx-h100's share of the peak in products is from GPT-3 175B of the DGX Cloud recipes.
bool IsOfMachine(const ModernRow& row) {
  return row.group == "dgxc" && absl::StartsWith(row.model, "gpt3-175b");
}

// Parameters but for norms and biases, of attention as if it were not latent: an order of models.
double SizeOf(const ModernModel& m) {
  const auto d = [](int64_t number) { return static_cast<double>(number); };
  const double experts = d(m.experts + m.shared_experts) * d(m.expert_width);
  const double attention = 2 * d(m.heads + m.kv_heads) * d(m.head_size);
  return d(m.layers) * d(m.hidden) * (3 * experts + attention);
}

// [source, GPU] The model with experts that calibrates the machine.
std::map<std::pair<std::string, std::string>, const ModernModel*> ExpertModels(
    const std::vector<PredictedRun>& predicted, const std::vector<ModernRow>& rows) {
  using Machine = std::pair<std::string, std::string>;
  std::map<Machine, int> all, used;
  for (const ModernRow& row : rows) {
    ++all[{row.group, row.gpu}];
    if (IsDenseCalibration(row) || IsOfMachine(row)) ++used[{row.group, row.gpu}];
  }
  std::map<Machine, std::map<const ModernModel*, int>> counts;
  for (const PredictedRun& run : predicted) {
    if (run.of->experts > 0) ++counts[{run.row->group, run.row->gpu}][run.of];
  }
  std::map<Machine, const ModernModel*> chosen;
  for (const auto& [machine, of_model] : counts) {
    if (of_model.size() < 2) continue;  // nothing would be judged
    const ModernModel* largest = nullptr;
    for (const auto& [model, count] : of_model) {
      if (10 * (count + used[machine]) > all[machine]) continue;
      if (largest == nullptr || SizeOf(*model) > SizeOf(*largest)) largest = model;
    }
    if (largest != nullptr) chosen[machine] = largest;
  }
  return chosen;
}

absl::optional<double> BestFactor(const std::vector<GraphedRun>& runs) {
  double least = std::numeric_limits<double>::infinity();
  absl::optional<int> best;
  const auto try_percent = [&](int percent) {
    const absl::optional<double> error = ErrorWith(runs, percent / 100.0);
    if (!error.has_value() || *error >= least) return;
    least = *error;
    best = percent;
  };
  for (int percent = 50; percent <= 160; percent += 5) try_percent(percent);
  if (!best.has_value()) return absl::nullopt;
  const int coarse = *best;
  for (int percent = coarse - 4; percent <= coarse + 4; ++percent) try_percent(percent);
  return *best / 100.0;
}

}  // namespace

ModernRuns RunsOf(const ModernRow& row) { return {row.group, row.gpu, row.precision}; }

bool Calibrates(const ModernRow& row) { return IsOfMachine(row) || IsDenseCalibration(row); }

double ModernCalibration::FactorOf(const ModernRow& row) const {
  const auto found = factors.find(RunsOf(row));
  return found == factors.end() ? 1 : found->second.factor;
}

absl::optional<double> ModernCalibration::FactorOfExperts(const ModernRow& row) const {
  const auto found = factors.find({row.group, row.gpu, kExperts});
  if (found == factors.end() || found->second.model == row.model) return absl::nullopt;
  return found->second.factor;
}

ModernCalibration Calibrate(const std::vector<ModernRow>& rows,
                            const std::vector<ModernModel>& models,
                            const ModernMachines& machines) {
  std::vector<PredictedRun> predicted;
  for (const ModernRow& row : rows) {
    absl::StatusOr<ModernStep> step = StepOfRow(row, models, machines);
    if (!step.ok() || step->assumed) continue;
    predicted.push_back({&row, FindModernModel(models, row.model), *std::move(step)});
  }
  const auto experts = ExpertModels(predicted, rows);
  std::map<std::pair<ModernRuns, std::string>, std::vector<GraphedRun>> runs;
  for (PredictedRun& run : predicted) {
    ModernRuns key = RunsOf(*run.row);
    const auto chosen = experts.find({run.row->group, run.row->gpu});
    const bool of_experts = chosen != experts.end() && chosen->second == run.of;
    if (of_experts) std::get<2>(key) = kExperts;
    if (!of_experts && !IsDenseCalibration(*run.row)) continue;
    absl::StatusOr<ModernStepModel> graph = ModernStepModel::Of(run.step);
    if (!graph.ok()) continue;
    runs[{key, run.row->model}].push_back(
        {*run.row->Seconds(), std::move(run.step), *std::move(graph)});
  }
  ModernCalibration made;
  for (const auto& [key, of_key] : runs) {
    const absl::optional<double> best = BestFactor(of_key);
    if (best.has_value()) made.factors[key.first] = {key.second, *best};
  }
  return made;
}

}  // namespace pipelab
