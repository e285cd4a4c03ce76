// Schedules as Python objects.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/command_call.h"
#include "experiments/commands/schedule_input.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "pipelines/step/schedule_file.h"
#include "pybind11/pybind11.h"
#include "pybind11/stl.h"
#include "python/pipelab/bindings.h"
#include "python/pipelab/errors.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace py = pybind11;

// The schedule of a scheme's name and sizes, as `pipelab schedule` takes them.
absl::StatusOr<Schedule> FromWord(const std::string& word,
                                  const std::vector<std::string>& options) {
  Schedule schedule;
  CommandOutput output;
  const auto read = [&schedule](const Words& words) -> absl::Status {
    PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
    PIPELAB_RETURN_IF_ERROR(CheckInput(input));
    schedule = std::move(input.schedule);
    return absl::OkStatus();
  };
  PIPELAB_RETURN_IF_ERROR(CallCommand({"schedule", word}, options, &output, read));
  return schedule;
}

// `form` is text, csv or json.
absl::StatusOr<Schedule> Parse(const std::string& form, const std::string& text) {
  CsvSkipped skipped;
  absl::StatusOr<Schedule> schedule = ParseScheduleFile(form, text, form, &skipped);
  absl::Status status = schedule.status();
  if (schedule.ok()) status = Validate(*schedule);
  if (status.ok()) return schedule;
  // The JSON reader names what it read.
  const bool named = form == "json" && !schedule.ok();
  return absl::FailedPreconditionError(named ? std::string(status.message())
                                             : absl::StrCat(form, ": ", status.message()));
}

struct ActionRow {
  int32_t device, stage;
  char32_t kind;  // numpy's U1
  int32_t micro_batch, slice, version;
};

// Rows as bytes, which numpy.frombuffer takes: the module itself does without numpy.
py::bytes ActionRows(const Schedule& schedule) {
  std::vector<ActionRow> rows;
  for (size_t d = 0; d < schedule.order.size(); ++d) {
    for (const Action& a : schedule.order[d]) {
      rows.push_back({static_cast<int32_t>(d), a.stage, static_cast<char32_t>(KindLetter(a.kind)),
                      a.micro_batch, a.slice, a.version});
    }
  }
  return py::bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(ActionRow));
}

}  // namespace

void BindSchedule(py::module_* module) {
  py::class_<Schedule>(*module, "CoreSchedule")
      .def_property_readonly("name", [](const Schedule& s) { return s.name; })
      .def_property_readonly("devices", &Schedule::num_devices)
      .def_property_readonly("stages", [](const Schedule& s) { return s.stages.num_stages(); })
      .def_property_readonly("micro_batches", [](const Schedule& s) { return s.num_micro_batches; })
      .def_property_readonly("slices", [](const Schedule& s) { return s.num_slices; })
      .def_property_readonly("stage_devices", [](const Schedule& s) { return s.placement.groups; })
      .def("action_rows", &ActionRows)
      .def("in_form", [](const Schedule& s,
                         const std::string& form) { return ValueOrThrow(InFormat(s, form)); })
      .def("__eq__", [](const Schedule& a, const Schedule& b) { return ToText(a) == ToText(b); });
  module->def("make_schedule",
              [](const std::string& word, const std::vector<std::string>& options) {
                absl::StatusOr<Schedule> schedule;
                {
                  const py::gil_scoped_release released;
                  schedule = FromWord(word, options);
                }
                return ValueOrThrow(std::move(schedule));
              });
  module->def("parse_schedule", [](const std::string& form, const std::string& text) {
    return ValueOrThrow(Parse(form, text));
  });
}

}  // namespace pipelab
