// What each device's memory is made of at its fullest, as a table: a row a scheme and device.
//
//   report.AddTable(PeakMemoryTable("memory_parts", "Memory at its peak",
//                                   {{"1f1b", &program, &costs}}));
//
// Simulated, from the order of instructions and the cost table (pipelines/sim/memory_levels.h); the
// unit is that of the largest: B, MiB or GiB. Running statistics and older weight versions have
// columns where there are any.
#ifndef PIPELAB_EXPERIMENTS_REPORT_MEMORY_TABLE_H_
#define PIPELAB_EXPERIMENTS_REPORT_MEMORY_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/report/table.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/memory_levels.h"

namespace pipelab {

struct MemoryRun {
  std::string scheme;
  const Program* program;
  const CostTable* costs;
};

Table PeakMemoryTable(std::string id, std::string caption, const std::vector<MemoryRun>& runs);

// One part of MemoryParts: its name in files, and as a reader sees it.
struct MemoryColumn {
  const char* metric;
  const char* title;
  const char* brief;
  Bytes (*of)(const MemoryParts& parts);
};
// All parts, which add up to MemoryParts::total().
const std::vector<MemoryColumn>& MemoryColumns();

// In which all figures up to the largest are well read.
struct MemoryUnit {
  const char* name;
  int64_t bytes;
  int decimals;

  double Of(Bytes b) const { return static_cast<double>(b.value()) / static_cast<double>(bytes); }
};
MemoryUnit MemoryUnitFor(Bytes largest);

// What has the device at its fullest: "2B1", "send 0F3"; empty for a device that does nothing.
std::string PeakInstruction(const Program& program, int device, const MemoryPeak& peak);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_MEMORY_TABLE_H_
