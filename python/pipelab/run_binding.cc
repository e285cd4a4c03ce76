// Simulated runs as Python objects.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/commands/command_call.h"
#include "experiments/commands/named_run.h"
#include "experiments/commands/step_input.h"
#include "experiments/report/chrome_trace.h"
#include "experiments/report/memory_svg.h"
#include "experiments/report/timeline_svg.h"
#include "experiments/report/timeline_text.h"
#include "experiments/simulate/simulated_run.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/trace.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pybind11/pybind11.h"
#include "pybind11/stl.h"
#include "python/pipelab/bindings.h"
#include "python/pipelab/errors.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace py = pybind11;

struct Run {
  NamedRun named;
  std::string json;
  std::string does_not_fit;
  double peak_tflops = 0;  // of a device, for its numbers; 0: not known

  const SimulatedRun& run() const { return named.run; }
};

absl::StatusOr<double> PeakTflops(const StepConfig& config) {
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<ModelOnCluster> on, LoadModelOnCluster(config));
  if (on->step().cluster == nullptr) return 0.0;
  const auto& peaks = on->step().cluster->device.peaks;
  const auto peak = peaks.find(on->step().type);
  return peak == peaks.end() ? 0.0 : peak->second.value.value() * 1e-12;
}

absl::StatusOr<Run> Simulate(const Words& words, const std::vector<std::string>& options) {
  Run run;
  CommandOutput output;
  const auto simulate = [&run](const Words& w) -> absl::Status {
    // Decimals as for drawings; figures are the same with any.
    PIPELAB_ASSIGN_OR_RETURN(run.named, ReadNamedRun(w, /*least_decimals=*/6));
    PIPELAB_ASSIGN_OR_RETURN(run.json, SimulatedJson(run.named));
    if (!run.run().has_model) return absl::OkStatus();
    const StepPrediction& prediction = run.run().prediction;
    PIPELAB_ASSIGN_OR_RETURN(run.peak_tflops, PeakTflops(prediction.step.config));
    return CheckMemory(prediction);
  };
  PIPELAB_RETURN_IF_ERROR(CallCommand(words, options, &output, simulate));
  run.does_not_fit = output.does_not_fit;
  return run;
}

struct SpanRow {
  double begin, end;  // units
  int32_t device, stage;
  char32_t kind;  // numpy's U1
  int32_t micro_batch, slice;
  char op[12];  // numpy's S12
};

py::bytes SpanRows(const Run& run) {
  const double unit = static_cast<double>(run.run().nanoseconds_per_unit);
  std::vector<SpanRow> rows;
  const Trace& trace = run.run().trace();
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    for (const ExecutedInstruction& s : SpansOf(run.run().program(), trace, d)) {
      SpanRow row = {static_cast<double>(s.begin_ns) / unit,
                     static_cast<double>(s.end_ns) / unit,
                     static_cast<int32_t>(d),
                     s.action.stage,
                     static_cast<char32_t>(KindLetter(s.action.kind)),
                     s.action.micro_batch,
                     s.action.slice,
                     {}};
      const char* const name = OpCodeName(s.op);
      std::memcpy(row.op, name, std::min(std::strlen(name), sizeof(row.op)));
      rows.push_back(row);
    }
  }
  return py::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(SpanRow));
}

std::string TimelineOf(const Run& run, const std::string& id) {
  return ValueOrThrow(TimelineSvg(id, run.named.name, run.run().program(), run.run().trace(),
                                  run.named.own_unit()));
}

std::string MemoryOf(const Run& run, const std::string& id) {
  const SimulatedRun& r = run.run();
  if (!r.has_bytes) {
    ThrowIfError(absl::InvalidArgumentError(
        "memory_svg: needs sizes: bytes, activation_bytes, weights, workspace, or model"));
  }
  return ValueOrThrow(
      MemorySvg(id, run.named.name, r.program(), r.costs(), r.trace(), run.named.own_unit()));
}

std::string TraceOf(const Run& run) {
  const SimulatedRun& r = run.run();
  return ValueOrThrow(
      ChromeTrace(run.named.name, r.program(), r.trace(), r.has_bytes ? &r.costs() : nullptr));
}

}  // namespace

void BindRun(py::module_* module) {
  py::class_<Run>(*module, "CoreRun")
      .def_property_readonly("json", [](const Run& run) { return run.json; })
      .def_property_readonly("does_not_fit", [](const Run& run) { return run.does_not_fit; })
      .def_property_readonly("peak_tflops", [](const Run& run) { return run.peak_tflops; })
      .def_property_readonly("note", [](const Run& run) { return run.run().note; })
      .def_property_readonly("name", [](const Run& run) { return run.named.name; })
      .def_property_readonly("schedule",
                             [](const Run& run) { return run.run().program().schedule; })
      .def("span_rows", &SpanRows)
      .def("svg", &TimelineOf)
      .def("memory_svg", &MemoryOf)
      .def("chrome_trace", &TraceOf)
      .def("text", [](const Run& run, int columns) {
        return TimelineText(run.run().program(), run.run().trace(), columns);
      });
  module->def("simulate", [](const Words& words, const std::vector<std::string>& options) {
    absl::StatusOr<Run> run;
    {
      const py::gil_scoped_release released;
      run = Simulate(words, options);
    }
    return ValueOrThrow(std::move(run));
  });
}

}  // namespace pipelab
