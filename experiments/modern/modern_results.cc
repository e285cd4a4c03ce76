#include "experiments/modern/modern_results.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "experiments/modern/modern_calibration.h"
#include "experiments/modern/modern_model.h"
#include "experiments/modern/release_recipes.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

ModernKind KindOf(const ModernData& data, const ModernRow& row) {
  const ModernModel* model = FindModernModel(data.models, row.model);
  if (model != nullptr && model->experts > 0) return ModernKind::kExperts;
  return row.trains_adapters() ? ModernKind::kAdapters : ModernKind::kDense;
}

std::string Alike(const ModernRow& r) {
  return absl::StrCat(r.group, "/", r.gpu, "/", r.precision, "/", r.model, "/", r.gpus, "/",
                      r.batch, "/", r.tokens);
}

// Powers of two between two layouts, over all sizes that a layout has.
double Distance(const ModernRow& a, const ModernRow& b) {
  double sum = 0;
  for (const auto size : {&ModernRow::gpus, &ModernRow::tensor, &ModernRow::pipeline,
                          &ModernRow::micro_batch, &ModernRow::batch, &ModernRow::tokens}) {
    sum += std::abs(std::log2(static_cast<double>(a.*size) / static_cast<double>(b.*size)));
  }
  return sum + (a.sharding == b.sharding ? 0 : 1) + (a.recompute == b.recompute ? 0 : 1);
}

struct Predicted {
  ModernResult* result;
  double flops;  // of a GPU and step
};

void AddNearest(std::vector<Predicted>* all) {
  for (Predicted& p : *all) {
    const ModernRow& row = *p.result->row;
    double least = std::numeric_limits<double>::infinity();
    for (const Predicted& other : *all) {
      const ModernRow& r = *other.result->row;
      if (r.group != row.group || r.gpu != row.gpu || r.precision != row.precision ||
          r.model == row.model || other.result->kind != p.result->kind) {
        continue;
      }
      const double distance = Distance(row, r);
      if (distance >= least) continue;
      least = distance;
      p.result->nearest_seconds = *r.Seconds() * p.flops / other.flops;
    }
  }
}

}  // namespace

absl::StatusOr<ModernData> LoadModernData(const std::string& folder) {
  ModernData data;
  PIPELAB_ASSIGN_OR_RETURN(const std::string models,
                           ReadFile(JoinPath(folder, "modern_models.csv")));
  PIPELAB_ASSIGN_OR_RETURN(const std::string rows,
                           ReadFile(JoinPath(folder, "modern_training_rows.csv")));
  PIPELAB_ASSIGN_OR_RETURN(data.models,
                           FaultOfFile(ParseModernModels(models, "modern_models.csv")));
  PIPELAB_ASSIGN_OR_RETURN(data.rows,
                           FaultOfFile(ParseModernRows(rows, "modern_training_rows.csv")));
  PIPELAB_RETURN_IF_ERROR(TakeReleases(&data.rows));
  for (ModernRow& row : data.rows) {
    const ModernModel* model = FindModernModel(data.models, row.model);
    if (model == nullptr || row.Seconds().has_value()) continue;
    row.step_seconds = SecondsFromFlops(*model, row);
  }
  return data;
}

const char* ModernKindName(ModernKind kind) {
  switch (kind) {
    case ModernKind::kDense:
      return "dense";
    case ModernKind::kExperts:
      return "experts";
    case ModernKind::kAdapters:
      return "adapters";
  }
  return "";
}

ModernResults PredictAll(const ModernData& data, const ModernMachines& machines) {
  ModernResults all;
  all.reserve(data.rows.size());
  std::vector<Predicted> predicted;
  for (const ModernRow& row : data.rows) {
    ModernResult& r = all.emplace_back();
    r.row = &row;
    r.kind = KindOf(data, row);
    r.calibrating = Calibrates(row);
    absl::StatusOr<ModernStep> step = StepOfRow(row, data.models, machines);
    if (!step.ok()) {
      r.why_not = std::string(step.status().message());
      continue;
    }
    r.assumed = step->assumed;
    r.inferred = step->inferred;
    r.further = step->model.further_tokens > 0;
    r.configuration =
        absl::StrCat(step->config.ToString(), ",", absl::StrJoin(step->recomputed, "+"));
    const absl::StatusOr<ModernStepModel> model = ModernStepModel::Of(*step);
    if (!model.ok()) {
      r.why_not = std::string(model.status().message());
      continue;
    }
    const absl::StatusOr<StepPrediction> p = model->Predict(*step);
    if (!p.ok()) {
      r.why_not = std::string(p.status().message());
      continue;
    }
    r.seconds = ToSeconds(p->step_time);
    r.memory = p->largest_device;
    r.device_memory = p->step.device_memory;
    predicted.push_back({&r, p->tflops_per_device * r.seconds});
  }
  AddNearest(&predicted);
  return all;
}

namespace {

// The times of judged rows, with what `ours` has of them; none: left out.
template <class Ours>
std::vector<TimedPrediction> TimesBy(const ModernResults& all, const ModernChoice& choice,
                                     const Ours& ours) {
  std::vector<TimedPrediction> times;
  for (const ModernResult& r : all) {
    if (!r.judged() || !choice(r)) continue;
    const absl::optional<double> seconds = ours(r);
    if (seconds.has_value()) times.push_back({Alike(*r.row), *r.row->Seconds(), *seconds});
  }
  return times;
}

}  // namespace

std::vector<TimedPrediction> TimesOf(const ModernResults& all, const ModernChoice& choice) {
  return TimesBy(all, choice, [](const ModernResult& r) { return r.seconds; });
}

std::vector<TimedPrediction> NearestTimesOf(const ModernResults& all, const ModernChoice& choice) {
  return TimesBy(all, choice, [](const ModernResult& r) { return r.nearest_seconds; });
}

std::vector<TimedPrediction> PeaksOf(const ModernResults& all, const ModernChoice& choice) {
  std::vector<TimedPrediction> peaks;
  for (const ModernResult& r : all) {
    if (!r.judged() || !r.row->peak_gib.has_value() || !choice(r)) continue;
    peaks.push_back({"", std::ldexp(*r.row->peak_gib, 30), static_cast<double>(r.memory.value())});
  }
  return peaks;
}

}  // namespace pipelab
