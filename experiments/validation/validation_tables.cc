#include "experiments/validation/validation_tables.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/predict/gpt_run.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Property = int64_t (*)(const MeasuredRow&);

struct NamedProperty {
  const char* name;
  Property of;
};

const NamedProperty kProperties[] = {
    {"hidden size", [](const MeasuredRow& r) { return r.hidden; }},
    {"layers", [](const MeasuredRow& r) { return r.layers; }},
    {"tensor parallelism", [](const MeasuredRow& r) { return r.tensor; }},
    {"pipeline parallelism", [](const MeasuredRow& r) { return r.pipeline; }},
    {"data parallelism", [](const MeasuredRow& r) { return r.data; }},
    {"samples of a micro-batch", [](const MeasuredRow& r) { return r.micro_batch; }},
    {"micro-batches", [](const MeasuredRow& r) { return r.micro_batches(); }},
};

std::vector<Cell> SummaryCells(const std::string& property, const std::string& value,
                               const std::vector<RowError>& errors) {
  const ErrorSummary s = Summarise(errors);
  return {Label(property),
          Label(value),
          Computed(static_cast<double>(s.rows)),
          Computed(ToPercent(s.mean)),
          Computed(ToPercent(s.median)),
          Computed(ToPercent(s.ninth_decile)),
          Computed(ToPercent(s.largest)),
          Computed(ToPercent(s.bias))};
}

// Milliseconds of a layer's forward and backward of one micro-batch, if nothing else took time.
double LayerTime(const MeasuredRow& r) {
  const double passes = static_cast<double>(r.micro_batches() + r.pipeline - 1) *
                        static_cast<double>(r.layers) / static_cast<double>(r.pipeline);
  return *r.milliseconds / passes;
}

// Less of it on each device, and otherwise alike.
bool HasMoreWork(const MeasuredRow& a, const MeasuredRow& than) {
  const auto same = [](const MeasuredRow& r) {
    return std::make_tuple(r.hidden, r.heads, r.layers, r.tokens, r.tensor, r.pipeline);
  };
  return same(a) == same(than) && a.micro_batch > than.micro_batch;
}

std::string Configuration(const MeasuredRow& r) {
  return absl::StrFormat("h=%d, %d layers, P=%d T=%d D=%d, b=%d, M=%d", r.hidden, r.layers,
                         r.pipeline, r.tensor, r.data, r.micro_batch, r.micro_batches());
}

}  // namespace

Table ErrorTable(const std::vector<RowError>& all) {
  Table t("errors", "The specification as it is: predicted against measured");
  t.AddKey("property");
  t.AddKey("value");
  t.AddColumn({"rows", "rows", "", "", Origin::kComputed, 0});
  t.AddColumn({"mean_error", "mean absolute error", "mean", "%", Origin::kComputed, 1});
  t.AddColumn({"median_error", "median", "", "%", Origin::kComputed, 1});
  t.AddColumn({"ninth_decile", "90th percentile", "90th", "%", Origin::kComputed, 1});
  t.AddColumn({"largest_error", "largest", "", "%", Origin::kComputed, 1});
  t.AddColumn({"bias", "mean with sign", "bias", "%", Origin::kComputed, 1});
  t.AddRow(SummaryCells("all", "-", all));
  for (const NamedProperty& p : kProperties) {
    std::map<int64_t, std::vector<RowError>> by_value;
    for (const RowError& e : all) by_value[p.of(*e.row)].push_back(e);
    for (const auto& [value, errors] : by_value) {
      t.AddRow(SummaryCells(p.name, absl::StrCat(value), errors));
    }
  }
  t.AddNote(
      "Not out of sample: of dgx-a100, every third row of the file calibrated it, and the others "
      "share sizes with those. Above 0, with sign: predicted slower than measured.");
  return t;
}

std::string ReasonOf(const RowError& error, const std::vector<RowError>& all,
                     const ClusterSpec& cluster) {
  const MeasuredRow& row = *error.row;
  ClusterSpec without_host = cluster;
  without_host.device.host_launch.reset();
  const auto device = SimulateRun(RunOfRow(row, kGpt2Vocabulary), without_host);
  std::string reason = "the device rules its time in the model";
  if (device.ok()) {
    const double share = ToMilliseconds(device->step_time) / error.predicted;
    if (share < 0.98) {
      reason = absl::StrFormat(
          "the host's launches rule: the device's work alone would take %.0f %% of the prediction",
          100 * share);
    }
  }
  const RowError* faster = nullptr;
  for (const RowError& other : all) {
    if (HasMoreWork(*other.row, row) && LayerTime(*other.row) < LayerTime(row) &&
        (faster == nullptr || LayerTime(*other.row) < LayerTime(*faster->row))) {
      faster = &other;
    }
  }
  if (faster != nullptr) {
    absl::StrAppendFormat(&reason,
                          "; with b=%d, that is with %d times the work, the same model took less a "
                          "layer and micro-batch: %.2f ms against %.2f ms",
                          faster->row->micro_batch, faster->row->micro_batch / row.micro_batch,
                          LayerTime(*faster->row), LayerTime(row));
  }
  const RowError* slower = nullptr;
  for (const RowError& other : all) {
    if (HasMoreWork(row, *other.row) && LayerTime(*other.row) > LayerTime(row) &&
        (slower == nullptr || LayerTime(*other.row) > LayerTime(*slower->row))) {
      slower = &other;
    }
  }
  if (slower != nullptr) {
    absl::StrAppendFormat(&reason,
                          "; with b=%d, that is with less work, the same model took more a layer "
                          "and micro-batch: %.2f ms against %.2f ms",
                          slower->row->micro_batch, LayerTime(*slower->row), LayerTime(row));
  }
  return reason;
}

Table WorstRowsTable(const std::vector<RowError>& errors, const ClusterSpec& cluster,
                     int64_t count) {
  std::vector<RowError> worst = errors;
  std::stable_sort(worst.begin(), worst.end(), [](const RowError& a, const RowError& b) {
    return std::abs(a.error()) > std::abs(b.error());
  });
  worst.resize(std::min<size_t>(worst.size(), static_cast<size_t>(count)));
  Table t("worst_rows", "The rows that the model misses most");
  t.AddKey("line", "line");
  t.AddKey("configuration");
  t.AddColumn({"measured", "measured", "", "ms", Origin::kPublished, 1});
  t.AddColumn({"predicted", "predicted", "", "ms", Origin::kSimulated, 1});
  t.AddColumn({"error", "error", "", "%", Origin::kComputed, 1});
  for (const RowError& e : worst) {
    t.AddRow({Label(static_cast<double>(e.row->line)), Label(Configuration(*e.row)),
              Published(*e.row->milliseconds, "measured elsewhere"), Simulated(e.predicted),
              Computed(ToPercent(e.error())).WithNote(ReasonOf(e, errors, cluster))});
  }
  return t;
}

absl::StatusOr<std::vector<MegatronResult>> PredictMegatron(const MegatronPaper& paper,
                                                            const ClusterSpec& cluster) {
  std::vector<MegatronResult> results;
  for (const PublishedMegatronRow& row : paper.rows) {
    GptRun run;
    run.layers = row.layers;
    run.hidden = row.hidden;
    run.heads = row.heads;
    run.tokens = paper.tokens;
    run.vocabulary = paper.vocabulary;
    StepConfig& c = run.config;
    c.scheme = row.virtual_stages > 1 ? "interleaved" : "1f1b";
    c.virtual_stages = row.virtual_stages > 1 ? static_cast<int>(row.virtual_stages) : 0;
    c.pipeline = static_cast<int>(row.pipeline);
    c.tensor = static_cast<int>(row.tensor);
    c.data = static_cast<int>(row.data());
    c.micro_batch_size = row.micro_batch;
    c.micro_batches = static_cast<int>(row.micro_batches());
    c.recompute = Recompute::kBlocks;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction point, SimulateRun(run, cluster));
    const double seconds = ToSeconds(point.step_time);
    const double pipeline = static_cast<double>(row.pipeline - 1);
    results.push_back({row,
                       paper.FlopsOf(row).value() / seconds / static_cast<double>(row.gpus) * 1e-12,
                       pipeline / static_cast<double>(row.virtual_stages * row.micro_batches()),
                       point.largest_device, point.step.device_memory});
  }
  return results;
}

Claim MegatronClaim(const std::vector<MegatronResult>& results) {
  Claim c = PaperClaim("megatron.table1", "Tflop/s of a GPU of five GPTs from 3.6B to 1008B",
                       "Megatron-LM (arXiv 2104.04473), Table 1, half of its rows", "read");
  c.origin = Origin::kSimulated;
  std::vector<ComparedCell> cells;
  for (const MegatronResult& r : results) {
    cells.push_back(
        {absl::StrFormat("%.1fB", r.published.parameters * 1e-9), r.published.tflops, r.tflops});
  }
  double sum = 0;
  for (const ComparedCell& cell : cells) sum += std::abs(cell.error());
  const double mean = sum / static_cast<double>(cells.size());
  c.ours = absl::StrFormat("mean error %.1f %%", ToPercent(mean));
  c.published = absl::StrCat(cells.size(), " cells");
  c.cells = ErrorsOf(cells);
  MetIf(&c, mean <= 0.05 && c.cells->largest <= 0.10, "mean within 5 %, each cell within 10 %",
        "the cluster's specification is not that of the paper's machine");
  return c;
}

Claim MegatronMemoryClaim(const std::vector<MegatronResult>& results) {
  Claim c = PaperClaim("megatron.table1_memory", "these rows ran on GPUs of 80 GB: they fit there",
                       "Megatron-LM (arXiv 2104.04473), Table 1, half of its rows", "read");
  size_t fit = 0;
  Bytes most;
  for (const MegatronResult& r : results) {
    if (r.memory <= r.device_memory) ++fit;
    most = std::max(most, r.memory);
  }
  c.unit = "GiB";
  c.published = absl::StrCat("all ", results.size(), " rows");
  Found(&c, Origin::kSimulated, ToGiB(most),
        absl::StrFormat("%d of %d rows; the fullest device %.1f GiB", fit, results.size(),
                        ToGiB(most)));
  MetIf(&c, fit == results.size(), "every row",
        "more is kept, or lives at a time, than Megatron-LM has");
  return c;
}

Table MegatronTable(const MegatronPaper& paper, const std::vector<MegatronResult>& results) {
  Table t("megatron", absl::StrCat("Megatron-LM: Tflop/s of a GPU. ", paper.paper));
  t.AddKey("parameters");
  t.AddKey("grid");
  t.AddColumn({"published", "published", "", "Tflop/s", Origin::kPublished, 0});
  t.AddColumn({"simulated", "simulated", "", "Tflop/s", Origin::kSimulated, 1});
  t.AddColumn({"error", "error", "", "%", Origin::kComputed, 1});
  t.AddColumn({"bubble", "bubble / compute", "bubble", "%", Origin::kComputed, 1});
  t.AddColumn({"memory", "fullest device", "", "GiB", Origin::kSimulated, 1});
  for (const MegatronResult& r : results) {
    const PublishedMegatronRow& p = r.published;
    t.AddRow({Label(absl::StrFormat("%.1fB", p.parameters * 1e-9)),
              Label(absl::StrFormat("P=%d T=%d D=%d, V=%d, b=%d, M=%d", p.pipeline, p.tensor,
                                    p.data(), p.virtual_stages, p.micro_batch, p.micro_batches())),
              Published(p.tflops, p.tag), Simulated(r.tflops), Computed(ToPercent(r.error())),
              Computed(ToPercent(r.bubble)), Simulated(ToGiB(r.memory))});
  }
  t.AddNote(
      "Both are the paper's flops of an iteration (its formula, with recomputation) over the time. "
      "Nothing is fitted to these rows.");
  return t;
}

}  // namespace pipelab
