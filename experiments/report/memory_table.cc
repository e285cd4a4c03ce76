#include "experiments/report/memory_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

struct Row {
  std::string scheme;
  int device = 0;
  std::string instruction;
  MemoryParts parts;
};

std::vector<Row> RowsOf(const std::vector<MemoryRun>& runs) {
  std::vector<Row> rows;
  for (const MemoryRun& run : runs) {
    const std::vector<MemoryPeak> peaks = PeakMemory(*run.program, *run.costs);
    for (int d = 0; d < static_cast<int>(peaks.size()); ++d) {
      rows.push_back({run.scheme, d, PeakInstruction(*run.program, d, peaks[d]), peaks[d].parts});
    }
  }
  return rows;
}

// Only some models and schemes have them.
bool IsRare(const MemoryColumn& column) {
  const absl::string_view metric = column.metric;
  return metric == "statistics" || metric == "older_weights";
}

}  // namespace

MemoryUnit MemoryUnitFor(Bytes largest) {
  constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;
  if (largest >= Bytes(10 * kGiB)) return {"GiB", kGiB, 2};
  if (largest >= Bytes(kMiB / 10)) return {"MiB", kMiB, 2};
  return {"B", 1, 0};
}

const std::vector<MemoryColumn>& MemoryColumns() {
  static const auto* columns = new std::vector<MemoryColumn>{
      {"weights", "weights", "weights", [](const MemoryParts& p) { return p.state.weights; }},
      {"gradients", "gradients", "gradients",
       [](const MemoryParts& p) { return p.state.gradients; }},
      {"optimizer_state", "optimizer state", "optimizer",
       [](const MemoryParts& p) { return p.state.optimizer; }},
      {"statistics", "running statistics", "statistics",
       [](const MemoryParts& p) { return p.state.statistics; }},
      {"older_weights", "older weight versions", "older weights",
       [](const MemoryParts& p) { return p.state.older_weights; }},
      {"kept", "kept for backwards", "kept", [](const MemoryParts& p) { return p.kept; }},
      {"messages", "inputs that wait, receives posted, results to send", "messages",
       [](const MemoryParts& p) { return p.messages; }},
      {"action", "running action: workspace and results", "action",
       [](const MemoryParts& p) { return p.action; }},
  };
  return *columns;
}

std::string PeakInstruction(const Program& program, int device, const MemoryPeak& peak) {
  if (peak.instruction < 0) return "";
  const Instruction& i = program.instructions[device][peak.instruction];
  if (i.op == OpCode::kCompute) return ToString(i.action);
  return absl::StrCat(OpCodeName(i.op), " ", ToString(i.action));
}

Table PeakMemoryTable(std::string id, std::string caption, const std::vector<MemoryRun>& runs) {
  const std::vector<Row> rows = RowsOf(runs);
  Bytes largest;
  for (const Row& row : rows) largest = std::max(largest, row.parts.total());
  const MemoryUnit unit = MemoryUnitFor(largest);
  std::vector<MemoryColumn> columns;
  for (const MemoryColumn& c : MemoryColumns()) {
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [&](const Row& row) { return c.of(row.parts) != Bytes(0); });
    if (any || !IsRare(c)) columns.push_back(c);
  }
  columns.push_back({"peak_memory", "all", "all", [](const MemoryParts& p) { return p.total(); }});

  Table table(std::move(id), std::move(caption));
  table.AddKey("scheme");
  table.AddKey("device");
  for (const MemoryColumn& c : columns) {
    table.AddColumn({c.metric, c.title, c.brief, unit.name, Origin::kSimulated, unit.decimals});
  }
  table.AddColumn({"peak_at", "fullest during", "during", "", Origin::kSimulated, 0});
  for (const Row& row : rows) {
    std::vector<Cell> cells = {Label(row.scheme), Label(row.device)};
    for (const MemoryColumn& c : columns) {
      cells.push_back(Simulated(unit.Of(c.of(row.parts))));
    }
    cells.push_back(Value(Origin::kSimulated, row.instruction));
    table.AddRow(std::move(cells));
  }
  return table;
}

}  // namespace pipelab
