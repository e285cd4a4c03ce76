// What tests of predictions share, here and in validation.
#ifndef PIPELAB_EXPERIMENTS_PREDICT_PREDICT_FIXTURE_H_
#define PIPELAB_EXPERIMENTS_PREDICT_PREDICT_FIXTURE_H_

#include "pipelines/cluster/catalog.h"

namespace pipelab {

inline ClusterSpec Dgx() { return LoadCluster("--cluster", "dgx-a100").value(); }

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PREDICT_PREDICT_FIXTURE_H_
