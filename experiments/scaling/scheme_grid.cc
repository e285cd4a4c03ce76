#include "experiments/scaling/scheme_grid.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "experiments/scaling/memory_fit.h"
#include "glog/logging.h"
#include "pipelines/analysis/analysis.h"
#include "pipelines/schedules/vocabulary.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<SchemeCell> ResultOf(const FittedPoint& fitted) {
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis analysis,
                           Analyze(fitted.point.step.program, fitted.point.trace));
  SchemeCell cell;
  cell.samples_per_second = fitted.point.samples_per_second();
  cell.recompute = fitted.chosen.config.recompute == Recompute::kFull;
  cell.samples = fitted.point.step.config.batch();
  cell.bubble = analysis.overall.bubble;
  cell.largest_device = fitted.point.largest_device;
  return cell;
}

// The faster of keeping and re-materialising. What a scheme refuses is a reason, not an error.
absl::StatusOr<SchemeCell> BestOf(StepCase c, int64_t batch) {
  SchemeCell best;
  best.missing = "does not fit into memory";
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    c.config.recompute = recompute;
    const absl::StatusOr<FittedPoint> fitted = LargestBatch(c, batch);
    if (!fitted.ok()) {
      if (!absl::IsInvalidArgument(fitted.status())) return fitted.status();
      if (best.samples_per_second == 0) best.missing = std::string(fitted.status().message());
      continue;
    }
    if (!fitted->fits) continue;
    PIPELAB_ASSIGN_OR_RETURN(const SchemeCell cell, ResultOf(*fitted));
    if (cell.samples_per_second > best.samples_per_second) best = cell;
  }
  return best;
}

Cell ThroughputOf(const SchemeCell& cell, const SchemeCell& gpipe) {
  if (!cell.missing.empty()) return Missing(cell.missing);
  if (!gpipe.missing.empty()) return Missing("gpipe has no result here");
  return Simulated(cell.samples_per_second / gpipe.samples_per_second);
}

}  // namespace

absl::StatusOr<SchemeGrid> MakeSchemeGrid(const GpipeFamily& family,
                                          const PublishedThroughput& published,
                                          const ClusterSpec& cluster) {
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model,
                           family.build(published.layers, published.width));
  SchemeGrid grid;
  grid.family = &family;
  grid.model = family.ModelName(published.layers, published.width);
  grid.cluster_title = cluster.title;
  for (const int64_t devices : published.devices) {
    for (const PublishedThroughput::Row& row : published.rows) {
      if (row.micro_batches == 1) continue;  // nothing to order
      grid.places.emplace_back(static_cast<int>(devices), static_cast<int>(row.micro_batches));
    }
  }
  for (const Scheme& scheme : Catalog()) {
    // The others train something else; token slices need attention that knows them.
    if (!TrainsAsSerial(scheme) || (scheme.options & (kTokenSlices | kOffloads)) != 0) {
      continue;
    }
    if (TakesVocabularyParts(scheme)) continue;  // the models have none
    LOG(INFO) << "every schedule: " << family.title << ", " << scheme.name;
    grid.schemes.emplace_back(scheme.name);
    std::vector<SchemeCell> cells;
    for (const auto& [devices, micro_batches] : grid.places) {
      StepCase c;
      c.on.model = &model;
      c.on.cluster = &cluster;
      c.on.type = TypeOn(cluster);
      c.config.scheme = std::string(scheme.name);
      c.config.pipeline = devices;
      c.config.micro_batches = micro_batches;
      c.config.cut = CutRule::kBlocks;
      PIPELAB_ASSIGN_OR_RETURN(const SchemeCell cell, BestOf(c, family.batch));
      cells.push_back(cell);
    }
    grid.cells.push_back(std::move(cells));
  }
  return grid;
}

Table SchemeGridTable(const SchemeGrid& grid) {
  Table t("schemes",
          absl::StrCat("Every synchronous schedule at the same memory limit: ", grid.model, " on ",
                       grid.cluster_title, ". Throughput against gpipe's"));
  t.AddKey("scheme");
  for (const auto& [devices, micro_batches] : grid.places) {
    const std::string place = absl::StrCat("K=", devices, " M=", micro_batches);
    t.AddColumn(
        {absl::StrCat("k", devices, "_m", micro_batches), place, "", "x", Origin::kSimulated, 2});
  }
  const auto& [last_devices, last_micro_batches] = grid.places.back();
  const std::string last = absl::StrCat(", K=", last_devices, " M=", last_micro_batches);
  t.AddColumn({"bubble", "bubble" + last, "bubble", "%", Origin::kSimulated, 1});
  t.AddColumn({"largest_device", "largest device" + last, "device", "GiB", Origin::kSimulated, 2});
  t.AddColumn({"recompute", "re-materialises" + last, "re-mat.", "", Origin::kComputed, 0});
  const size_t gpipe =
      std::find(grid.schemes.begin(), grid.schemes.end(), "gpipe") - grid.schemes.begin();
  for (size_t s = 0; s < grid.schemes.size(); ++s) {
    std::vector<Cell> row = {Label(grid.schemes[s])};
    for (size_t p = 0; p < grid.places.size(); ++p) {
      row.push_back(ThroughputOf(grid.cells[s][p], grid.cells[gpipe][p]));
    }
    const SchemeCell& cell = grid.cells[s].back();
    if (cell.missing.empty()) {
      row.push_back(Simulated(ToPercent(cell.bubble)));
      row.push_back(Simulated(ToGiB(cell.largest_device)));
      row.push_back(Computed(cell.recompute ? "yes" : "no"));
    } else {
      row.insert(row.end(), 3, Missing(cell.missing));
    }
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "Left out: asynchronous schedules, which do not train as serial training does, and terapipe, "
      "whose token slices unfused attention cannot compute.");
  return t;
}

}  // namespace pipelab
