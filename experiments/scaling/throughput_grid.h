// GPipe's Tables 2 and 3: throughput over devices and micro-batches, normalised to the first cell.
//
//   PIPELAB_ASSIGN_OR_RETURN(ThroughputGrid grid, MakeThroughputGrid(family, published, cluster));
//   report.AddTable(ThroughputTable(grid));
//
// The batch is that of Table 1, halved until it fits into memory ("adjusted to fit memory if
// necessary"); all cells re-materialise. Stages are cut by GPipe's own partitioner, which is
// compared with the paper, and by the one that makes the longest stage shortest.
#ifndef PIPELAB_EXPERIMENTS_SCALING_THROUGHPUT_GRID_H_
#define PIPELAB_EXPERIMENTS_SCALING_THROUGHPUT_GRID_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiments/published/gpipe.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "experiments/scaling/gpipe_family.h"
#include "experiments/scaling/memory_fit.h"
#include "experiments/scaling/overheads.h"
#include "tools/base/units.h"

namespace pipelab {

struct ThroughputCell {
  int devices = 0, micro_batches = 0;
  double published = 0;  // normalised, as are these:
  double own = 0;        // cut by GPipe's partitioner
  double optimal = 0;    // cut for the shortest longest stage
  std::string layout;    // of own_point: the groups of each stage
  FittedPoint own_point, optimal_point;
  Overheads overheads;  // of own_point

  double error() const { return own / published - 1; }
};

struct ThroughputGrid {
  const GpipeFamily* family = nullptr;
  PublishedThroughput published;
  std::string cluster_title;
  double device_gib = 0;              // memory of a device
  std::vector<ThroughputCell> cells;  // by devices, then micro-batches

  const ThroughputCell& At(int devices, int micro_batches) const;  // CHECKs
};

absl::StatusOr<ThroughputGrid> MakeThroughputGrid(const GpipeFamily& family,
                                                  const PublishedThroughput& published,
                                                  const ClusterSpec& cluster);

// The largest error of a cell where a step's set-up takes so long.
double WorstError(const ThroughputGrid& grid, Nanoseconds set_up);
// The set-ups of a step that are plausible, as intervals in which no cell is further off than
// `accepted`, or some is. Empty for machines without a set-up.
std::vector<RangeValue> SetUps(const ThroughputGrid& grid, double accepted);
// What a reader must know before the reasons: a first cell that does not fit, and the errors at the
// ends of the range of set-ups. Empty, or ends with "; ".
std::string WhatIsUnknown(const ThroughputGrid& grid);

// Why a cell is more than a quarter off, in numbers of the grid; empty where it is not.
std::string ReasonOfMiss(const ThroughputGrid& grid, const ThroughputCell& cell);

// Pairs of cells whose published values differ, and how many of them are ordered alike here.
struct Orderings {
  int pairs = 0, alike = 0;
  std::vector<std::string> others;  // "K=4 M=1 above K=2 M=4"
};
Orderings CompareOrderings(const ThroughputGrid& grid);

Table ThroughputTable(const ThroughputGrid& grid);
Table OverheadTable(const ThroughputGrid& grid, const PublishedOverheads& published);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_THROUGHPUT_GRID_H_
