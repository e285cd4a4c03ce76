// What a step of a graph network takes on a cluster, from the counts of its members.
//
//   const GraphMachine machine = {&nvlink, &pcie};
//   PIPELAB_ASSIGN_OR_RETURN(GraphStepTime t, TimeOfStep(counts, set_up, machine));
//   t.load;                                        // nanoseconds
//
// Sampling, loading and training follow one another, as the systems compared here run them. In each
// a step waits for its slowest member, and in training each layer does:
//   sampling  a neighbour's id is a read of 32 bytes of host memory (lists do not fit the devices'
//             memories), and costs its device some passes over tables; exchanges between;
//   loading   rows of the host over the members' ways to it, all at one time; rows of peers' caches
//             over the links between devices; own ones are copied;
//   training  each layer's operations (models/graph/operation.h) and exchanges, forward and
//             backward; the sum of gradients as a ring; Adam.
// All of an exchange's transfers run at once, and the fullest link rules.
#ifndef PIPELAB_PIPELINES_GRAPHS_GRAPH_STEP_TIME_H_
#define PIPELAB_PIPELINES_GRAPHS_GRAPH_STEP_TIME_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/operation.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/network.h"
#include "pipelines/graphs/graph_placement.h"
#include "tools/base/units.h"

namespace pipelab {

struct GraphMachine {
  const ClusterSpec* devices = nullptr;  // innermost level: members of a host; then hosts
  const ClusterSpec* host = nullptr;     // the same devices, by their ways to host memory
};

struct GraphStepTime {
  Nanoseconds sample, load, train;
  Nanoseconds exchange;  // of `train`, between members but for gradients

  Nanoseconds total() const { return sample + load + train; }
};

// NotFound naming what the device lacks; InvalidArgument for more members than the cluster has.
absl::StatusOr<GraphStepTime> TimeOfStep(const GraphStep& counts, const GraphSetUp& set_up,
                                         const GraphMachine& machine);

// Transfers of bytes[from * n + to], all at one time.
Nanoseconds ExchangeTime(const Network& network, const ByteMatrix& bytes);

// A layer on one block: `in` and `out` numbers a row, with and without gradients of its inputs.
struct GraphLayerShape {
  BlockCounts block;
  int64_t in = 0, out = 0;
  int64_t heads = 0;          // GAT's; 0: GraphSAGE with means
  bool needs_inputs = false;  // gradients of inputs
};
// The operations are those of the layers' specification (models/specs/graph_conv_spec.h), but that
// GraphSAGE multiplies all sources before the mean where that makes rows narrower, as DGL's
// SAGEConv does.
LayerOperations GraphLayerOperations(const GraphLayerShape& shape);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_GRAPH_STEP_TIME_H_
