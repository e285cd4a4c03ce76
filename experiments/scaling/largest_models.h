// GPipe's Table 1: the largest model that each number of accelerators trains, by the memory model.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto rows, LargestModels(family, paper, cluster));
//   report.AddTable(LargestModelsTable(family, cluster, rows));
//
// The paper does not print the number of micro-batches. One rule chooses it for all columns: the
// fewest (1, 2, 4, ...) with which the paper's own model fits; without re-materialisation there is
// one micro-batch, and the batch is halved until it fits. Stages are cut so that the largest
// device's memory is the least. The largest model is searched for with that same number.
#ifndef PIPELAB_EXPERIMENTS_SCALING_LARGEST_MODELS_H_
#define PIPELAB_EXPERIMENTS_SCALING_LARGEST_MODELS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/gpipe.h"
#include "experiments/report/table.h"
#include "experiments/scaling/gpipe_family.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct LargestModel {
  PublishedLargestModel published;
  int64_t parameters = 0;
  int64_t samples = 0;  // of a step
  int micro_batches = 0;
  bool fits = false;
  Bytes parameter_memory, activations;  // of all devices
  Bytes activations_without_recompute;  // the same with nothing dropped, whether it fits or not
  Bytes largest_device;
  int64_t found_layers = 0, found_width = 0, found_parameters = 0;  // by the search
};

absl::StatusOr<std::vector<LargestModel>> LargestModels(const GpipeFamily& family,
                                                        const GpipePaper& paper,
                                                        const ClusterSpec& cluster);

Table LargestModelsTable(const GpipeFamily& family, const ClusterSpec& cluster,
                         const std::vector<LargestModel>& rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_LARGEST_MODELS_H_
