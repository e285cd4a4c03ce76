// What GPipe could not show: the cells of its tables under every other synchronous schedule, at the
// same memory limit.
//
//   PIPELAB_ASSIGN_OR_RETURN(SchemeGrid grid, MakeSchemeGrid(family, published, cluster));
//   report.AddTable(SchemeGridTable(grid));
//
// Model, cost table, memory limit and batch are one; the schedule alone changes. Each keeps all
// activations or re-materialises, whichever is faster and fits; the batch is halved until it fits.
// Stages are cut for the shortest longest stage.
#ifndef PIPELAB_EXPERIMENTS_SCALING_SCHEME_GRID_H_
#define PIPELAB_EXPERIMENTS_SCALING_SCHEME_GRID_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/gpipe.h"
#include "experiments/report/table.h"
#include "experiments/scaling/gpipe_family.h"

namespace pipelab {

struct SchemeCell {
  std::string missing;  // why there is no result; empty: there is
  double samples_per_second = 0;
  bool recompute = false;
  int64_t samples = 0;  // of a step
  double bubble = 0;    // 0 to 1
  Bytes largest_device;
};

struct SchemeGrid {
  const GpipeFamily* family = nullptr;
  std::string model, cluster_title;
  std::vector<std::pair<int, int>> places;  // (devices, micro-batches)
  std::vector<std::string> schemes;
  std::vector<std::vector<SchemeCell>> cells;  // [scheme][place]
};

// The published table's model; its devices with its larger numbers of micro-batches.
absl::StatusOr<SchemeGrid> MakeSchemeGrid(const GpipeFamily& family,
                                          const PublishedThroughput& published,
                                          const ClusterSpec& cluster);

Table SchemeGridTable(const SchemeGrid& grid);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_SCHEME_GRID_H_
