#include "experiments/grids/large_scale.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "experiments/grids/batch_sweep.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kSecondsADay = 86400;

double Days(const LargeScaleOptions& options, const RankedStep& r, int64_t batch) {
  const double steps =
      options.least_steps * (1 + options.critical_batch / static_cast<double>(batch));
  return steps * static_cast<double>(r.step_time.value()) * 1e-9 / kSecondsADay;
}

// The batch whose training ends first.
struct LargeBest {
  int64_t batch = 0;
  RankedStep result;
  double days = 0;
};

absl::optional<LargeBest> BestBatch(const LargeScaleOptions& options, const BatchSweep& sweep,
                                    const std::string& method) {
  absl::optional<LargeBest> best;
  for (const int64_t batch : options.batches) {
    const RankedStep* r = sweep.Find(method, batch);
    if (r == nullptr) continue;
    const double days = Days(options, *r, batch);
    if (!best.has_value() || days < best->days) best = LargeBest{batch, *r, days};
  }
  return best;
}

}  // namespace

absl::StatusOr<Table> LargeScaleTable(const StepModel& model, const LargeScaleOptions& options) {
  Table t(
      "large_scale",
      absl::StrFormat("Training to the end on more GPUs: critical batch %g samples, at least %g "
                      "steps, %s on %s",
                      options.critical_batch, options.least_steps, model.model->graph.name,
                      model.cluster->title));
  t.AddKey("devices", "GPUs");
  t.AddKey("method");
  const Origin simulated = Origin::kSimulated, computed = Origin::kComputed;
  t.AddColumn({"batch", "best batch", "batch", "", computed, 0});
  t.AddColumn({"days", "training", "", "days", simulated, 1});
  t.AddColumn({"gpu_days", "cost", "", "GPU-days", simulated, 0});
  t.AddColumn({"tflops", "Tflop/s a GPU", "", "Tflop/s", simulated, 1});
  t.AddColumn({"config", "configuration", "", "", computed, 0});
  for (const int64_t devices : options.devices) {
    PIPELAB_ASSIGN_OR_RETURN(
        const BatchSweep sweep,
        SweepBatches(model, {devices, options.batches, options.methods, options.recompute}));
    for (const SearchMethod& method : options.methods) {
      const absl::optional<LargeBest> best = BestBatch(options, sweep, method.name);
      std::vector<Cell> row = {Label(static_cast<double>(devices)), Label(method.name)};
      if (!best.has_value()) {
        row.insert(row.end(), 5, Missing("nothing fits at any of the batches"));
      } else {
        row.push_back(Computed(static_cast<double>(best->batch)));
        row.push_back(Simulated(best->days));
        row.push_back(Simulated(best->days * static_cast<double>(devices)));
        row.push_back(Simulated(best->result.tflops_per_device));
        row.push_back(Computed(best->result.config.ToString()));
      }
      t.AddRow(std::move(row));
    }
  }
  return t;
}

}  // namespace pipelab
