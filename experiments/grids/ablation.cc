#include "experiments/grids/ablation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kBreadthFirst[] = "breadth-first", kDepthFirst[] = "depth-first";
// Lamy-Poirier 2023, abstract.
constexpr double kPublishedGain = 43;

double Gain(const GridResult& a, const GridResult& b) {
  return ToPercent(a.tflops_a_device / b.tflops_a_device - 1);
}

struct Step {
  std::string name;
  GridConfig config;
};

// From the depth-first configuration to the breadth-first one.
std::vector<Step> Steps(const GridConfig& depth, const GridConfig& breadth) {
  std::vector<Step> steps = {{"depth-first, its best", depth}};
  GridConfig c = depth;
  c.overlap_pipeline = true;
  steps.push_back({"+ messages beside compute", c});
  c.overlap_data = true;
  steps.push_back({"+ reductions beside compute", c});
  c.scheme = breadth.scheme;
  steps.push_back({"+ breadth-first order", c});
  c.sharding = breadth.sharding;
  steps.push_back({"+ breadth-first's sharding", c});
  steps.push_back({"+ its grid, loops and micro-batches: breadth-first, its best", breadth});
  return steps;
}

}  // namespace

std::vector<std::string> HeadlineNotes(const BatchSweep& sweep,
                                       const std::vector<int64_t>& batches) {
  std::vector<std::string> notes;
  const double devices = static_cast<double>(sweep.devices);
  bool first = true;
  for (const int64_t batch : batches) {
    const GridResult* breadth = sweep.Find(kBreadthFirst, batch);
    const GridResult* depth = sweep.Find(kDepthFirst, batch);
    if (breadth == nullptr || depth == nullptr) continue;
    if (first) {
      notes.push_back(absl::StrFormat(
          "Breadth-first over depth-first as Megatron-LM runs it, at the smallest batch, %.3f a "
          "GPU: "
          "%+.0f %% here; published (read): up to +%.0f %%.",
          static_cast<double>(batch) / devices, Gain(*breadth, *depth), kPublishedGain));
      first = false;
    }
    for (const SweepCell& cell : sweep.cells) {
      if (cell.batch != batch || !cell.best.has_value()) continue;
      if (static_cast<double>(batch) / devices >= 1) continue;
      if (cell.best->step_time >= breadth->step_time) continue;
      notes.push_back(absl::StrFormat(
          "At %.3f samples a GPU %s is faster than breadth-first, by %.1f %%: not as in the paper.",
          static_cast<double>(batch) / devices, cell.method, Gain(*cell.best, *breadth)));
    }
  }
  return notes;
}

absl::StatusOr<Table> AblationTable(const GridModel& model, const BatchSweep& sweep,
                                    int64_t batch) {
  Table t("ablation", absl::StrCat("From depth-first to breadth-first, batch ", batch));
  t.AddKey("change");
  t.AddColumn({"tflops", "Tflop/s a GPU", "", "Tflop/s", Origin::kSimulated, 1});
  t.AddColumn({"gain", "over depth-first", "", "%", Origin::kComputed, 1});
  t.AddColumn({"bubble", "bubble", "", "%", Origin::kSimulated, 1});
  t.AddColumn(
      {"pipeline", "pipeline communication exposed", "pipeline", "%", Origin::kSimulated, 1});
  t.AddColumn({"data", "data-parallel communication exposed", "data", "%", Origin::kSimulated, 1});
  t.AddColumn({"config", "configuration", "", "", Origin::kComputed, 0});
  const GridResult* breadth = sweep.Find(kBreadthFirst, batch);
  const GridResult* depth = sweep.Find(kDepthFirst, batch);
  if (breadth == nullptr || depth == nullptr) {
    t.AddNote("One of the two does not fit at this batch.");
    return t;
  }
  for (const Step& step : Steps(depth->config, breadth->config)) {
    const absl::StatusOr<GridPoint> point = EvaluateGrid(model, step.config);
    if (!point.ok()) {
      const Cell missing = Missing(std::string(point.status().message()));
      t.AddRow({Label(step.name), missing, missing, missing, missing, missing,
                Computed(step.config.ToString())});
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const GridBreakdown b, BreakDown(model, *point));
    t.AddRow({Label(step.name), Simulated(point->tflops_a_device),
              Computed(ToPercent(point->tflops_a_device / depth->tflops_a_device - 1)),
              Simulated(ToPercent(b.bubble)), Simulated(ToPercent(b.pipeline)),
              Simulated(ToPercent(b.data)), Computed(step.config.ToString())});
  }
  t.AddNote("Memory is not looked at between the two ends.");
  return t;
}

}  // namespace pipelab
