// A machine's curves as the cost model has them: the roofline of square products, attention by
// length, all-reduces by size; as text, as a drawing and as JSON.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<MachineChart> charts, ChartsOf(cluster));
//   for (const MachineChart& chart : charts) text += ChartText(chart);
//
// A time has the launch of its operation in it, or the call of its collective, and no other work
// beside. Times are computed from the machine's values (pipelines/cluster/device.h, RingStep).
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_MACHINE_CHARTS_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_MACHINE_CHARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct MachineLine {
  std::string name;           // "bf16"
  std::string roof;           // what bounds it: "peak 989 Tflop/s, 3.35 TB/s"; empty: nothing known
  std::vector<double> at;     // values in the chart's unit, one for each size
  std::vector<double> roofs;  // of each size, with a roof
};

struct MachineChart {
  std::string title;       // "products of n x n by n x n"
  std::string size, unit;  // "n", "Tflop/s"
  std::vector<int64_t> sizes;
  std::vector<MachineLine> lines;
};

// Errors are OperationTime's.
absl::StatusOr<std::vector<MachineChart>> ChartsOf(const ClusterSpec& cluster);

// A bar for each size: # up to the value, . up to the roof.
std::string ChartText(const MachineChart& chart);
// All of them below one another.
std::string ChartsSvg(const std::string& machine, const std::vector<MachineChart>& charts);
nlohmann::json ChartsJson(const std::vector<MachineChart>& charts);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_MACHINE_CHARTS_H_
