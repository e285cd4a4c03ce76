// What a device's efficiencies come to, kind by kind: rates at the smallest and the largest size.
//
//   std::printf("%s", RateTable(cluster).ToTerminal().c_str());
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_RATE_TABLE_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_RATE_TABLE_H_

#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

Table RateTable(const ClusterSpec& measured);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_RATE_TABLE_H_
