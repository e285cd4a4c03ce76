// Which cluster files a study used, and where their values are from: what a report prints.
//
//   report.AddTable(SpecificationTable({tpu, gpus}));
#ifndef PIPELAB_EXPERIMENTS_SCALING_SPECIFICATION_TABLE_H_
#define PIPELAB_EXPERIMENTS_SCALING_SPECIFICATION_TABLE_H_

#include <vector>

#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

Table SpecificationTable(const std::vector<ClusterSpec>& clusters);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_SPECIFICATION_TABLE_H_
