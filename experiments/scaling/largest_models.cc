#include "experiments/scaling/largest_models.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/scaling/memory_fit.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

StepCase CaseOf(const PublishedLargestModel& published, const GroupedModel& model,
                const ClusterSpec& cluster) {
  StepCase c;
  c.on.model = &model;
  c.on.cluster = &cluster;
  c.on.type = TypeOn(cluster);
  c.config.pipeline = static_cast<int>(published.devices);
  c.config.recompute = published.recompute ? Recompute::kFull : Recompute::kNone;
  c.config.cut = CutRule::kMemory;
  return c;
}

absl::StatusOr<FittedPoint> Fit(const StepCase& c, int64_t batch) {
  return c.config.recompute == Recompute::kFull ? FewestMicroBatches(c, batch)
                                                : LargestBatch(c, batch);
}

// Whether a model of this size fits with the row's batch and micro-batches. A size that cannot be
// built or cut does not.
absl::StatusOr<bool> SizeFits(const GpipeFamily& family, const LargestModel& row,
                              const ClusterSpec& cluster, int64_t layers, int64_t width,
                              int64_t* parameters) {
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, family.build(layers, width));
  StepCase c = CaseOf(row.published, model, cluster);
  c.config.micro_batches = row.micro_batches;
  c.config.micro_batch_size = row.samples / row.micro_batches;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction point, PredictStep(c.on, c.config));
  *parameters = model.graph.num_parameters();
  return point.fits;
}

// Memory grows with either size, so the largest lies between one that fits and one that does not.
absl::Status Search(const GpipeFamily& family, const ClusterSpec& cluster, LargestModel* row) {
  const int64_t step = family.step;
  int64_t low = 0, high = 0;  // in steps
  const int64_t from = (family.widens ? row->published.width : row->published.layers) / step;
  const auto fits = [&](int64_t steps) -> absl::StatusOr<bool> {
    const int64_t layers = family.widens ? row->published.layers : steps * step;
    const int64_t width = family.widens ? steps * step : row->published.width;
    int64_t parameters = 0;
    PIPELAB_ASSIGN_OR_RETURN(const bool ok,
                             SizeFits(family, *row, cluster, layers, width, &parameters));
    if (ok) {
      row->found_layers = layers;
      row->found_width = width;
      row->found_parameters = parameters;
    }
    return ok;
  };
  for (int64_t at = std::max<int64_t>(from, row->published.devices);; at *= 2) {
    PIPELAB_ASSIGN_OR_RETURN(const bool ok, fits(at));
    if (!ok) {
      high = at;
      break;
    }
    low = at;
  }
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (!family.widens && middle < row->published.devices) break;
    PIPELAB_ASSIGN_OR_RETURN(const bool ok, fits(middle));
    (ok ? low : high) = middle;
  }
  return absl::OkStatus();
}

double Error(double predicted, double published) { return ToPercent(predicted / published - 1); }

}  // namespace

absl::StatusOr<std::vector<LargestModel>> LargestModels(const GpipeFamily& family,
                                                        const GpipePaper& paper,
                                                        const ClusterSpec& cluster) {
  std::vector<LargestModel> rows;
  for (const PublishedLargestModel& published : paper.largest_models) {
    if (published.family != family.id) continue;
    LOG(INFO) << "largest models: " << family.title << ", " << published.column;
    PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model,
                             family.build(published.layers, published.width));
    PIPELAB_ASSIGN_OR_RETURN(const FittedPoint fitted,
                             Fit(CaseOf(published, model, cluster), family.batch));
    LargestModel row;
    row.published = published;
    row.parameters = model.graph.num_parameters();
    row.samples = fitted.point.step.config.batch();
    row.micro_batches = fitted.chosen.config.micro_batches;
    row.fits = fitted.fits;
    row.parameter_memory = Bytes(12) * row.parameters;
    row.activations = ActivationsOf(fitted.point);
    row.largest_device = fitted.point.largest_device;
    StepCase without = fitted.chosen;
    without.config.recompute = Recompute::kNone;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction all_kept,
                             PredictStep(without.on, without.config));
    row.activations_without_recompute = ActivationsOf(all_kept);
    if (row.fits) PIPELAB_RETURN_IF_ERROR(Search(family, cluster, &row));
    rows.push_back(std::move(row));
  }
  return rows;
}

Table LargestModelsTable(const GpipeFamily& family, const ClusterSpec& cluster,
                         const std::vector<LargestModel>& rows) {
  Table t("largest_models", absl::StrCat("GPipe's Table 1 for ", family.title,
                                         ": memory of all devices together, on ", cluster.title));
  const Origin published = Origin::kPublished, simulated = Origin::kSimulated,
               computed = Origin::kComputed;
  const std::string& unit = family.unit;
  t.AddKey("column");
  t.AddKey("model");
  t.AddColumn({"parameters_published", "parameters", "par.", "million", published, 1});
  t.AddColumn({"parameters", "parameters", "par.", "million", computed, 1});
  t.AddColumn({"parameters_error", "error", "", "%", computed, 2});
  t.AddColumn({"parameter_memory_published", "parameter memory", "par. mem.", unit, published, 2});
  t.AddColumn({"parameter_memory", "parameter memory", "par. mem.", unit, computed, 2});
  t.AddColumn({"parameter_memory_error", "error", "", "%", computed, 1});
  t.AddColumn({"activations_published", "peak activations", "act.", unit, published, 2});
  t.AddColumn({"activations", "peak activations", "act.", unit, simulated, 2});
  t.AddColumn({"activations_error", "error", "", "%", computed, 1});
  t.AddColumn(
      {"activations_all_kept", "without re-materialisation", "all kept", unit, simulated, 1});
  t.AddColumn({"batch", "batch", "", "", computed, 0});
  t.AddColumn({"micro_batches", "micro-batches", "M", "", computed, 0});
  t.AddColumn({"largest_device", "largest device", "device", "GiB", simulated, 2});
  t.AddColumn({"largest_found", "largest model that fits", "found", "", computed, 0});
  t.AddColumn({"largest_found_parameters", "its parameters", "found", "million", computed, 0});
  for (const LargestModel& r : rows) {
    const PublishedLargestModel& p = r.published;
    const auto in_unit = [&](Bytes b) {
      return static_cast<double>(b.value()) / family.bytes_of_unit;
    };
    const double parameters = static_cast<double>(r.parameters);
    const double memory_error = Error(in_unit(r.parameter_memory), p.parameter_memory);
    Cell memory = Computed(memory_error);
    if (std::abs(memory_error) > 3) {
      memory = std::move(memory).WithNote(
          absl::StrFormat("the published memory is %.1f million parameters of 12 bytes, not the "
                          "%.1f million of the "
                          "same column: the paper's two rows do not agree",
                          p.parameter_memory * family.bytes_of_unit / 12e6, p.parameters / 1e6));
    }
    Cell activations = Published(p.activation_memory, p.tag);
    if (!p.note.empty()) activations = std::move(activations).WithNote(p.note);
    Cell device = Simulated(ToGiB(r.largest_device));
    if (!r.fits) {
      device = std::move(device).WithNote("more than the device has: no micro-batch is so small");
    }
    t.AddRow({Label(p.column), Label(family.ModelName(p.layers, p.width)),
              Published(p.counted / 1e6, p.tag), Computed(parameters / 1e6),
              Computed(Error(parameters, p.counted)), Published(p.parameter_memory, p.tag),
              Computed(in_unit(r.parameter_memory)), std::move(memory), std::move(activations),
              Simulated(in_unit(r.activations)),
              Computed(Error(in_unit(r.activations), p.activation_memory)),
              Simulated(in_unit(r.activations_without_recompute)),
              Computed(static_cast<double>(r.samples)),
              Computed(static_cast<double>(r.micro_batches)), std::move(device),
              r.fits ? Computed(family.ModelName(r.found_layers, r.found_width))
                     : Missing("the published model does not fit"),
              r.fits ? Computed(static_cast<double>(r.found_parameters) / 1e6)
                     : Missing("the published model does not fit")});
  }
  t.AddNote(
      "The paper does not print micro-batches: here the fewest (1, 2, 4, ...) with which its model "
      "fits. "
      "Naive-1 keeps everything, and its batch is halved until it fits. Stages are cut for the "
      "least "
      "memory of the largest device.");
  if (family.widens) {
    t.AddNote(
        "Parameters are compared with the counts of torchgpipe for the same nets; the paper prints "
        "82M, 318M, 542M, 1.05B and 1.8B.");
  }
  return t;
}

}  // namespace pipelab
