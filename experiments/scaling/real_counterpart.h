// The study on a machine that is here: a scaled-down network trained through the runtime under
// GPipe's schedule on in-process devices, and its step time as measured, as replayed, and as the
// cost model predicts it from a specification of this machine.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RealNet net, ScaledDown("amoebanet"));
//   PIPELAB_ASSIGN_OR_RETURN(const RealCounterpart real, RunRealCounterpart(net, {}));
//   report->AddTable(RealCounterpartTable(real));
//
// A step has the same samples for every number M of micro-batches, as in the paper; stages are cut
// between the groups by GPipe's partitioner; recomputing is on.
//
//   measured   wall clock of a step, the median: the machine's cores are shared by all devices;
//   replayed   the simulator with the processor times of the measured actions: one core per device;
//   simulated  the simulator with times of operations from the specification, which is given, or
//              measured on kernels (experiments/calibration) in turns with the runs, so that both
//              meet the same neighbours on the machine. Nothing of it comes from the network.
//
// All cores are kept busy meanwhile (busy_cores.h), since a core is slower where the others work.
#ifndef PIPELAB_EXPERIMENTS_SCALING_REAL_COUNTERPART_H_
#define PIPELAB_EXPERIMENTS_SCALING_REAL_COUNTERPART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "experiments/calibration/calibration.h"
#include "experiments/report/table.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct RealNet {
  std::string id;     // of gpipe_family.h: "amoebanet"
  std::string title;  // "AmoebaNet-D (6, 256) on 16 x 16 pixels"
  GroupedModel model;
};

// The family's network at a size that a core trains in under a second a step. InvalidArgument for
// another family.
absl::StatusOr<RealNet> ScaledDown(absl::string_view family);

struct RealCounterpartOptions {
  std::vector<int> devices = {1, 2, 4, 8};         // K
  std::vector<int> micro_batches = {1, 4, 8, 32};  // M, each a divisor of the samples
  int64_t batch_samples = 32;                      // of a step
  int rounds = 8;  // of all configurations, in turns with parts of the kernels
  int steps = 1;   // of each configuration in a round, behind one that warms up
  absl::optional<ClusterSpec> machine;  // measured here where there is none
  CalibrationOptions calibration;       // its kernels and sizes; the rounds are those above
  bool progress = true;
};

struct RealPoint {
  int devices = 0, micro_batches = 0;
  int64_t micro_batch_size = 0;
  std::vector<int> groups_of_stage;
  int steps = 0;  // measured
  Nanoseconds measured, replayed, simulated;

  double error() const { return simulated / replayed - 1; }
};

struct RealCounterpart {
  std::string net;
  ClusterSpec machine;
  std::vector<RealPoint> points;  // K by K, M by M

  double MedianError() const;   // of absolute ones
  double LargestError() const;  // in absolute value
};

// InvalidArgument for sizes that the network cannot serve; otherwise the executor's errors.
absl::StatusOr<RealCounterpart> RunRealCounterpart(const RealNet& net,
                                                   const RealCounterpartOptions& options);

Table RealCounterpartTable(const RealCounterpart& real);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SCALING_REAL_COUNTERPART_H_
