// The tables, timelines and curves of a comparison.
#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/memory_table.h"
#include "experiments/report/table.h"
#include "experiments/training/comparison.h"
#include "pipelines/analysis/analysis.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

template <typename T>
T Median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The median over steps, with each of them.
Cell StepTime(const std::vector<Nanoseconds>& times) {
  std::vector<double> samples;
  for (const Nanoseconds time : times) samples.push_back(ToMs(time));
  return Measured(ToMs(Median(times))).WithSamples(std::move(samples));
}

Cell StepTime(const std::vector<Trace>& traces) {
  std::vector<Nanoseconds> times;
  for (const Trace& trace : traces) times.push_back(trace.makespan);
  return StepTime(times);
}

// Sizes as a reader writes them: "4 x 2" is 4 devices with 2 stages each.
std::string SizesText(const SchemeResult& r) {
  return absl::StrCat(r.config.pipeline, " x ", r.config.virtual_stages);
}

Bytes LargestPeak(const Trace& trace) {
  Bytes largest;
  for (const DeviceTrace& device : trace.devices)
    largest = std::max(largest, device.peak_activation);
  return largest;
}

Table SchemeTable(const ComparisonOptions& options, absl::string_view data) {
  Table t("schemes",
          absl::StrCat("One model, one data set; only the scheme changes. Data: ", data));
  t.AddKey("scheme");
  t.AddKey("stages", "devices x virtual stages");
  t.AddKey("micro_batches", "micro-batches");
  const Origin measured = Origin::kMeasured, replayed = Origin::kReplayed,
               simulated = Origin::kSimulated;
  t.AddColumn({"loss", absl::StrCat("loss after ", options.steps, " steps"), "loss",
               options.loss_unit, measured, 4});
  t.AddColumn({"equals_serial", "equals serial training", "equals serial", "", Origin::kComputed, 0,
               /*varies=*/true});
  t.AddColumn({"step_time", "step time", "step", "ms", measured, 1});
  t.AddColumn({"step_time_replayed", "step time, one core per device", "step", "ms", replayed, 1});
  t.AddColumn({"bubble_predicted", "bubble predicted", "bubble", "%", simulated, 1});
  t.AddColumn({"bubble_replayed", "bubble", "bubble", "%", replayed, 1});
  t.AddColumn({"peak_activation_predicted", "peak activations of a device, predicted", "peak act.",
               "MiB", simulated, 2});
  t.AddColumn({"peak_activation", "peak activations of a device, by the arena", "peak act.", "MiB",
               measured, 2});
  t.AddColumn({"bytes_sent", "sent a step, all devices", "sent", "MiB", measured, 2});
  return t;
}

void AddSerialRow(const ComparisonOptions& options, const ComparisonResult& result, Table* t) {
  const std::string no_pipeline = "a plain loop: no pipeline, no messages";
  t->AddRow({Label("serial"), Label("1 x 1"), Label(options.micro_batches),
             Measured(result.serial_losses.back()), Computed("reference"),
             StepTime(result.serial_times), Missing(no_pipeline), Missing(no_pipeline),
             Missing(no_pipeline), Missing(no_pipeline), Missing(no_pipeline),
             Missing(no_pipeline)});
}

absl::Status AddSchemeRow(const SchemeResult& r, const Equality& equality, Table* t) {
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis simulated, Analyze(r.program, r.simulated));
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis replayed, Analyze(r.program, r.replayed));
  PIPELAB_ASSIGN_OR_RETURN(const TraceAnalysis measured, Analyze(r.program, r.traces.back()));
  t->AddRow({Label(r.config.scheme), Label(SizesText(r)), Label(r.config.micro_batches),
             Measured(r.losses.back()), Computed(equality.text), StepTime(r.traces),
             Replayed(ToMs(r.replayed.makespan)), Simulated(ToPercent(simulated.overall.bubble)),
             Replayed(ToPercent(replayed.overall.bubble)),
             Simulated(ToMiB(LargestPeak(r.simulated))),
             Measured(ToMiB(LargestPeak(r.traces.back()))),
             Measured(ToMiB(measured.overall.bytes_sent))});
  return absl::OkStatus();
}

// Every device's peak, predicted beside measured.
Table MemoryTable(const ComparisonResult& result) {
  Table t("memory", "Peak activation memory by device: activations, messages and workspace");
  t.AddKey("scheme");
  t.AddKey("device");
  t.AddColumn({"peak_activation_predicted", "predicted", "", "MiB", Origin::kSimulated, 3});
  t.AddColumn({"peak_activation", "by the arena", "", "MiB", Origin::kMeasured, 3});
  t.AddColumn({"peak_activation_error", "difference", "", "%", Origin::kComputed, 2,
               /*varies=*/true});
  t.AddColumn(
      {"peak_state", "weights, gradients, optimizer", "state", "MiB", Origin::kMeasured, 2});
  for (const SchemeResult& r : result.schemes) {
    for (size_t d = 0; d < r.simulated.devices.size(); ++d) {
      const Bytes predicted = r.simulated.devices[d].peak_activation;
      const DeviceTrace& measured = r.traces.back().devices[d];
      t.AddRow({Label(r.config.scheme), Label(static_cast<double>(d)), Simulated(ToMiB(predicted)),
                Measured(ToMiB(measured.peak_activation)),
                Computed(ToPercent(predicted / measured.peak_activation - 1)),
                Measured(ToMiB(measured.peak_state))});
    }
  }
  return t;
}

// Against the clock, which says something of devices that each have a core alone.
Cell ClockError(Nanoseconds predicted, Nanoseconds measured, int devices) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores < devices) return Missing("devices take turns on fewer cores, which is not predicted");
  return Computed(ToPercent(predicted / measured - 1));
}

// Every step time, predicted beside replayed and measured.
Table TimeTable(const ComparisonResult& result) {
  Table t("times", "Step time: predicted from kernels measured here, replayed, measured");
  t.AddKey("scheme");
  t.AddColumn({"step_time_predicted", "predicted", "", "ms", Origin::kSimulated, 1,
               /*varies=*/true});
  t.AddColumn({"step_time_replayed", "one core per device", "", "ms", Origin::kReplayed, 1});
  t.AddColumn({"step_time_replayed_error", "difference from replayed", "", "%", Origin::kComputed,
               1, /*varies=*/true});
  t.AddColumn({"step_time", "on the cores here", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"step_time_error", "difference from measured", "", "%", Origin::kComputed, 1,
               /*varies=*/true});
  const Nanoseconds serial = Median(result.serial_times);
  const char kNoReplay[] = "a plain loop is on one core anyway";
  t.AddRow({Label("serial"), Simulated(ToMs(result.serial_predicted)), Missing(kNoReplay),
            Missing(kNoReplay), StepTime(result.serial_times),
            ClockError(result.serial_predicted, serial, 1)});
  std::vector<double> errors;
  for (const SchemeResult& r : result.schemes) {
    std::vector<Nanoseconds> times;
    for (const Trace& trace : r.traces) times.push_back(trace.makespan);
    const double error = ToPercent(r.predicted / r.replayed.makespan - 1);
    errors.push_back(std::abs(error));
    t.AddRow({Label(r.config.scheme), Simulated(ToMs(r.predicted)),
              Replayed(ToMs(r.replayed.makespan)), Computed(error), StepTime(r.traces),
              ClockError(r.predicted, Median(times), r.config.pipeline)});
  }
  t.AddNote(absl::StrFormat(
      "Predicted against replayed: median error %.1f %%, largest %.1f %%. Both give each device a "
      "core; the clock also counts what other programs take. %s",
      Median(errors), *std::max_element(errors.begin(), errors.end()), result.machine->title));
  return t;
}

// Losses that are equal but for rounding lie on one another; their differences do not.
std::vector<double> MillionthsOver(const std::vector<double>& losses,
                                   const std::vector<double>& serial) {
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(losses.size(), serial.size()); ++i) {
    differences.push_back(1e6 * (losses[i] - serial[i]));
  }
  return differences;
}

Table MemoryPartsTable(const ComparisonResult& result) {
  std::vector<MemoryRun> runs;
  for (const SchemeResult& r : result.schemes)
    runs.push_back({r.config.scheme, &r.program, &r.costs});
  return PeakMemoryTable("memory_parts", "What each device's memory is made of when it is fullest",
                         runs);
}

}  // namespace

std::string ComparisonTakeaway(const ComparisonResult& result) {
  if (result.schemes.size() < 2) return "";
  const auto [fastest, slowest] =
      std::minmax_element(result.schemes.begin(), result.schemes.end(),
                          [](const SchemeResult& a, const SchemeResult& b) {
                            return a.replayed.makespan < b.replayed.makespan;
                          });
  const auto smallest =
      std::min_element(result.schemes.begin(), result.schemes.end(),
                       [](const SchemeResult& a, const SchemeResult& b) {
                         return LargestPeak(a.simulated) < LargestPeak(b.simulated);
                       });
  return absl::StrFormat(
      "%s has the shortest step, %.1f ms (replayed), %.2f times as fast as %s. %s needs the least "
      "memory for activations, %.2f MiB on its fullest device (simulated).",
      fastest->config.scheme, ToMs(fastest->replayed.makespan),
      ToMs(slowest->replayed.makespan) / ToMs(fastest->replayed.makespan), slowest->config.scheme,
      smallest->config.scheme, ToMiB(LargestPeak(smallest->simulated)));
}

absl::Status AddToReport(const ComparisonOptions& options, absl::string_view data,
                         const ComparisonResult& result, Report* report) {
  Table schemes = SchemeTable(options, data);
  AddSerialRow(options, result, &schemes);
  std::vector<Series> differences;
  for (const SchemeResult& r : result.schemes) {
    const Equality equality = CompareLosses(r, result.serial_losses);
    PIPELAB_RETURN_IF_ERROR(AddSchemeRow(r, equality, &schemes));
    if (!equality.ok)
      report->AddNote(absl::StrCat(r.config.scheme, " misses serial training: ", equality.text));
    differences.push_back({r.config.scheme, MillionthsOver(r.losses, result.serial_losses)});
  }
  schemes.AddNote(
      "gpipe re-materialises (as published): its backward passes include a second forward, and its "
      "bubble is "
      "counted with recomputation as work.");
  report->AddTable(std::move(schemes));
  if (result.machine.has_value()) report->AddTable(TimeTable(result));
  report->AddTable(MemoryTable(result));
  report->AddTable(MemoryPartsTable(result));
  report->AddLossCurves(options.curves_title, absl::StrCat("loss [", options.loss_unit, "]"),
                        {{"serial", result.serial_losses}});
  report->AddLossCurves(absl::StrCat(options.curves_title, ", difference from serial"),
                        absl::StrCat("difference [1e-6 ", options.loss_unit, "]"), differences);
  for (const SchemeResult& r : result.schemes) {
    report->AddTimeline(r.config.scheme, r.program, r.simulated, &r.costs);
    report->AddTimeline(r.config.scheme, r.program, r.replayed);
    report->AddTimeline(r.config.scheme, r.program, r.traces.back());
  }
  return absl::OkStatus();
}

}  // namespace pipelab
