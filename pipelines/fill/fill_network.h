// A network as a fill job: its layers are the pieces, with the cost model's times and bytes.
//
//   const Machine machine = {cluster.device, NumberType::kFp16};
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<FillNetwork> sizes, FillNetworks(bert, machine, {}));
//   const FilledGaps f = FillWithNetwork(sizes, gaps[d], /*slack=*/{});
//   f.flops.value() / ToSeconds(step);     // what the gaps of device d give the network
//
// Inference: a round is a batch's way forward; the job holds the weights, and between two pieces
// what later layers still read. Training: forwards, backwards from the last layer to the first, and
// the optimizer's step; the job holds weights, gradients, the optimizer's state and all that the
// forwards keep. Bytes have the machine's width, the state of a training 4 a number.
#ifndef PIPELAB_PIPELINES_FILL_FILL_NETWORK_H_
#define PIPELAB_PIPELINES_FILL_FILL_NETWORK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "models/graph/layer_spec.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/fill/fill_plan.h"
#include "pipelines/fill/gaps.h"
#include "tools/base/units.h"

namespace pipelab {

struct FillNetworkOptions {
  bool training = false;
  int64_t most_samples = 256;  // of a round; networks are of powers of two
  // Between device and host, for a state that does not stay.
  BytesPerSecond host_link{12e9};
};

struct FillNetwork {
  FillJob job;
  int64_t samples = 0;
  Flops flops;       // of a round: products of the network
  Nanoseconds time;  // of a round, on a device of its own
  Bytes memory;      // the most that it holds

  FlopsPerSecond rate() const { return FlopsPerSecond(flops.value() / ToSeconds(time)); }
};

// The network with 1, 2, 4, ... samples, as long as an otherwise empty device holds it. NotFound
// naming the layer and what the machine lacks; ResourceExhausted naming the network where not one
// sample fits.
absl::StatusOr<std::vector<FillNetwork>> FillNetworks(const ModelGraph& graph,
                                                      const Machine& machine,
                                                      const FillNetworkOptions& options);
// The one with the highest rate on a device of its own.
const FillNetwork& FastestAlone(const std::vector<FillNetwork>& sizes);

// What a device's gaps do of a network in a step: the mean over several steps, since a round that
// is not over goes on in the next one.
struct FilledGaps {
  int64_t samples = 0;  // of a round, at which the gaps do most; 0: no gap holds it
  Flops flops;          // a step
  Nanoseconds work;     // of pieces
  Nanoseconds fits;     // of the gaps that have the memory for all its pieces
};
FilledGaps FillWithNetwork(const std::vector<FillNetwork>& sizes, const DeviceGaps& gaps,
                           Nanoseconds slack);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_FILL_FILL_NETWORK_H_
