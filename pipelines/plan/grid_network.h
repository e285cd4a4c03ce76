// The links of a grid's devices: what a message between stages takes, and a ring of data-parallel
// copies.
//
//   GridLinks links(model, config, costs);     // costs: of one device, whole micro-batches
//   links.MessageHop(/*from=*/0, /*to=*/1);    // pipeline devices
//   costs.network = links.NetworkOf(MembersOf(model, config));
//
// Of the cluster, cluster/grid_links.h says what each kind of transfer gets. A message between
// stages is divided among the devices of the tensor-parallel group that sends it, as in
// Megatron-LM, and put together by the one that receives it.
#ifndef PIPELAB_PIPELINES_PLAN_GRID_NETWORK_H_
#define PIPELAB_PIPELINES_PLAN_GRID_NETWORK_H_

#include <cstdint>

#include "pipelines/cost/cost_table.h"
#include "pipelines/cost/network.h"
#include "pipelines/plan/grid_config.h"

namespace pipelab {

// Copies that the program has of a data-parallel group: two stand for all where all are alike.
int MembersOf(const GridModel& model, const GridConfig& config);
// What each call of the communication library takes beside the links.
Nanoseconds CallOverhead(const GridModel& model);

class GridLinks {
 public:
  // Keeps references to the first two.
  GridLinks(const GridModel& model, const GridConfig& config, const CostTable& costs);

  // Between two different devices of the pipeline, one of the equal ones of all copies.
  PathCost MessageHop(int from, int to) const;
  // A hop of a ring over the program's members, on which it takes as long as on one over all
  // copies. Without latency and infinite where there is one copy.
  PathCost MemberHop(int members) const;
  // A link for each ordered pair of the program's devices, which are pipeline x members.
  Network NetworkOf(int members) const;

 private:
  const GridModel& model_;
  const GridConfig& config_;
  Nanoseconds overhead_;  // of a message
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLAN_GRID_NETWORK_H_
