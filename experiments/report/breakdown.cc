#include "experiments/report/breakdown.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

Origin OriginOf(TraceOrigin origin) {
  Trace trace;
  trace.origin = origin;
  return pipelab::OriginOf(trace);
}

void AddColumns(const TraceAnalysis& a, Table& table) {
  const Origin origin = OriginOf(a.origin);
  const auto column = [&](const char* metric, const char* title, const char* unit, int decimals) {
    table.AddColumn({metric, title, "", unit, origin, decimals});
  };
  table.AddKey("scheme");
  table.AddKey("device");
  column("compute", "compute", "ms", 2);
  column("waiting", "waiting", "ms", 2);
  column("communication", "communication calls", "ms", 3);
  column("reduction", "reduction", "ms", 2);
  column("optimizer", "optimizer", "ms", 2);
  column("dispatch", "dispatch", "ms", 3);
  column("ends", "before and after", "ms", 2);
  column("bubble", "bubble", "%", 1);
  if (a.origin == TraceOrigin::kMeasured) {
    column("compute_cpu", "compute, processor time", "ms", 2);
    column("library_share", "compute inside libraries", "%", 1);
  }
  column("peak_activation", "peak activation", "MiB", 2);
  column("peak_in_flight", "peak in flight", "forwards", 0);
  column("bytes_sent", "sent", "MiB", 2);
}

void AddRow(const TraceAnalysis& a, absl::string_view scheme, std::string device,
            const DeviceAnalysis& d, Table& table) {
  const Origin origin = OriginOf(a.origin);
  const auto time = [&](Nanoseconds t) { return Value(origin, ToMs(t)); };
  std::vector<Cell> cells = {Label(std::string(scheme)), Label(std::move(device)),
                             time(d.wall.compute),       time(d.wall.waiting),
                             time(d.wall.communication), time(d.wall.reduction),
                             time(d.wall.optimizer),     time(d.wall.dispatch),
                             time(d.wall.ends),          Value(origin, ToPercent(d.bubble))};
  if (a.origin == TraceOrigin::kMeasured) {
    cells.push_back(time(d.cpu.compute));
    cells.push_back(Value(origin, ToPercent(d.library_share)));
  }
  cells.push_back(Value(origin, ToMiB(d.peak_activation)));
  cells.push_back(Value(origin, d.peak_in_flight));
  cells.push_back(Value(origin, ToMiB(d.bytes_sent)));
  table.AddRow(std::move(cells));
}

}  // namespace

Table BreakdownTable(std::string id, absl::string_view scheme, const TraceAnalysis& analysis) {
  Table table(std::move(id),
              absl::StrCat("Where the ", OriginName(OriginOf(analysis.origin)), " step of ", scheme,
                           " went: ", ToString(analysis.step_time), " on each device"));
  AddColumns(analysis, table);
  for (size_t d = 0; d < analysis.devices.size(); ++d) {
    AddRow(analysis, scheme, absl::StrCat(d), analysis.devices[d], table);
  }
  AddRow(analysis, scheme, "all", analysis.overall, table);
  table.AddNote("all: times and traffic are sums over devices, peaks the largest device's.");
  return table;
}

}  // namespace pipelab
