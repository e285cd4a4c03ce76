// pipelab simulate: figures of a schedule on paper.
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "experiments/commands/command.h"
#include "experiments/commands/output.h"
#include "experiments/commands/paper_run.h"
#include "experiments/commands/schedule_input.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(std::string, json_out, "", "file of the figures as JSON; -: stdout; empty: a table");

namespace pipelab {
namespace {

std::string AsJson(const Figures& figures, const CsvSkipped& skipped) {
  nlohmann::json devices = nlohmann::json::array();
  for (const DeviceFigures& d : figures.devices) {
    devices.push_back({{"busy", d.busy},
                       {"idle", d.idle},
                       {"span", d.span},
                       {"peak_in_flight", d.peak_in_flight}});
  }
  nlohmann::json all = {
      {"makespan", figures.makespan}, {"bubble", figures.bubble}, {"devices", devices}};
  if (skipped.total() > 0) all["skipped_cells"] = skipped.total();
  return DumpJson(all);
}

std::string AsTable(const std::string& source, const Figures& figures) {
  std::string text = absl::StrFormat("%s: makespan %.12g, bubble %.2f %%\n\n", source,
                                     figures.makespan, 100 * figures.bubble);
  absl::StrAppendFormat(&text, "%6s %12s %12s %12s %14s\n", "device", "busy", "idle", "span",
                        "peak in flight");
  for (size_t d = 0; d < figures.devices.size(); ++d) {
    const DeviceFigures& f = figures.devices[d];
    absl::StrAppendFormat(&text, "%6d %12.12g %12.12g %12.12g %14d\n", d, f.busy, f.idle, f.span,
                          f.peak_in_flight);
  }
  return text;
}

}  // namespace

absl::Status SimulateCommand(const Words& words) {
  PIPELAB_ASSIGN_OR_RETURN(ScheduleInput input, ReadScheduleInput(words));
  PIPELAB_RETURN_IF_ERROR(CheckInput(input));
  PrintSkippedNote(input);
  PIPELAB_ASSIGN_OR_RETURN(const PaperRun run,
                           RunOnPaper(std::move(input.schedule), TimesFromFlags()));
  const Figures figures = FiguresOf(run);
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json_out, AsJson(figures, input.skipped)));
  }
  if (json_out == "-") return absl::OkStatus();
  return WriteOutput("stdout", "-", AsTable(input.source, figures));
}

}  // namespace pipelab
