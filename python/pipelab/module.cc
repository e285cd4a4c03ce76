// The extension module pipelab._core: commands by words and options, and what has an object.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "experiments/commands/command_call.h"
#include "experiments/plan_commands/plan_commands.h"
#include "pybind11/pybind11.h"
#include "pybind11/stl.h"
#include "python/pipelab/bindings.h"
#include "python/pipelab/errors.h"
#include "tools/base/version.h"

namespace pipelab {
namespace {

namespace py = pybind11;

// What the command wrote, by name, and the line of a step that does not fit.
std::pair<std::map<std::string, std::string>, std::string> Call(
    const Words& words, const std::vector<std::string>& options) {
  CommandOutput output;
  absl::Status status;
  {
    const py::gil_scoped_release released;
    status = CallCommand(words, options, &output);
  }
  ThrowIfError(status);
  return {output.texts, output.does_not_fit};
}

std::vector<std::tuple<std::string, std::string, std::string, std::string>> Options(
    const std::string& command) {
  std::vector<std::tuple<std::string, std::string, std::string, std::string>> rows;
  for (const OptionInfo& o : ValueOrThrow(OptionsOfCommand(command))) {
    rows.emplace_back(o.name, o.type, o.default_value, o.help);
  }
  return rows;
}

}  // namespace
}  // namespace pipelab

PYBIND11_MODULE(_core, module) {
  pipelab::LinkPlanCommands();
  module.attr("version") = pipelab::kVersion;
  pipelab::DefineErrors(&module);
  module.def("call", &pipelab::Call);
  module.def("options", &pipelab::Options);
  pipelab::BindSchedule(&module);
  pipelab::BindRun(&module);
}
