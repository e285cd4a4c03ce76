#include "experiments/grids/batch_sweep.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<SweepCell> BestOf(StepCache* cache, const SearchMethod& method,
                                 const BatchSweepOptions& options, int64_t batch,
                                 BatchSweep* sweep) {
  const StepModel& model = cache->model();
  SearchRequest search;
  search.devices = options.devices;
  search.batch = batch;
  search.recompute = options.recompute;
  search.max_tensor = static_cast<int>(NodeDevices(*model.cluster));
  search.methods = {method};
  SweepCell cell;
  cell.method = method.name;
  cell.batch = batch;
  const absl::StatusOr<SearchResult> found = Search(cache, search);
  if (!found.ok()) {
    if (!absl::IsNotFound(found.status())) return found.status();
    cell.missing = std::string(found.status().message());
    return cell;
  }
  sweep->considered += found->refusals.considered;
  sweep->simulated += found->refusals.simulated;
  cell.best = found->best[0];
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction point, PredictStep(cache, cell.best->config));
  PIPELAB_ASSIGN_OR_RETURN(cell.breakdown, BreakDown(model, point));
  return cell;
}

}  // namespace

const RankedStep* BatchSweep::Find(const std::string& method, int64_t batch) const {
  for (const SweepCell& cell : cells) {
    if (cell.method == method && cell.batch == batch && cell.best.has_value()) return &*cell.best;
  }
  return nullptr;
}

absl::StatusOr<BatchSweep> SweepBatches(const StepModel& model, const BatchSweepOptions& options) {
  BatchSweep sweep;
  sweep.devices = options.devices;
  StepCache cache(model);
  for (const int64_t batch : options.batches) {
    LOG(INFO) << "search: " << model.model->graph.name << " on " << options.devices << " of "
              << model.cluster->name << ", batch " << batch;
    for (const SearchMethod& method : options.methods) {
      PIPELAB_ASSIGN_OR_RETURN(SweepCell cell, BestOf(&cache, method, options, batch, &sweep));
      sweep.cells.push_back(std::move(cell));
    }
  }
  return sweep;
}

Table BatchSweepTable(std::string id, std::string caption, const BatchSweep& sweep) {
  Table t(std::move(id), std::move(caption));
  t.AddKey("batch");
  t.AddKey("method");
  const Origin simulated = Origin::kSimulated, computed = Origin::kComputed;
  t.AddColumn({"batch_a_device", "batch a GPU", "", "", computed, 3});
  t.AddColumn({"tflops", "Tflop/s a GPU", "", "Tflop/s", simulated, 1});
  t.AddColumn({"step", "step", "", "ms", simulated, 1});
  t.AddColumn({"memory", "largest GPU", "memory", "GiB", simulated, 1});
  t.AddColumn({"compute", "compute", "", "%", simulated, 1});
  t.AddColumn({"recompute", "recompute", "", "%", simulated, 1});
  t.AddColumn({"idle", "idle", "", "%", simulated, 1});
  t.AddColumn({"tensor", "tensor-parallel communication", "tensor", "%", simulated, 1});
  t.AddColumn({"pipeline", "pipeline communication exposed", "pipeline", "%", simulated, 1});
  t.AddColumn({"data", "data-parallel communication exposed", "data", "%", simulated, 1});
  t.AddColumn({"config", "configuration", "", "", computed, 0});
  for (const SweepCell& cell : sweep.cells) {
    std::vector<Cell> row = {
        Label(static_cast<double>(cell.batch)), Label(cell.method),
        Computed(static_cast<double>(cell.batch) / static_cast<double>(sweep.devices))};
    if (!cell.best.has_value()) {
      row.insert(row.end(), 10, Missing(cell.missing));
      t.AddRow(std::move(row));
      continue;
    }
    const RankedStep& r = *cell.best;
    const StepBreakdown& b = cell.breakdown;
    for (const double value : {r.tflops_per_device, ToMs(r.step_time), ToGiB(r.largest_device),
                               ToPercent(b.compute), ToPercent(b.recompute), ToPercent(b.idle),
                               ToPercent(b.tensor), ToPercent(b.pipeline), ToPercent(b.data)}) {
      row.push_back(Simulated(value));
    }
    row.push_back(Computed(r.config.ToString()));
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "The rest of the time is the optimizer's step. Tflop/s are of the model's products; "
      "recomputation is not counted as work.");
  return t;
}

std::vector<Series> BatchSweepSeries(const BatchSweep& sweep) {
  std::vector<Series> series;
  for (const SweepCell& cell : sweep.cells) {
    if (!cell.best.has_value()) continue;
    auto of_method = std::find_if(series.begin(), series.end(),
                                  [&](const Series& s) { return s.name == cell.method; });
    if (of_method == series.end()) {
      series.emplace_back();
      series.back().name = cell.method;
      of_method = series.end() - 1;
    }
    of_method->values.push_back(cell.best->tflops_per_device);
    of_method->steps.push_back(cell.batch);
  }
  return series;
}

}  // namespace pipelab
