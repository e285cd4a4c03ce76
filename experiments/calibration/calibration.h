// This machine as a cluster specification, from measurements: peaks are the best rates of any
// kernel, efficiencies those of each kind by size, latency and bandwidth those of messages between
// threads.
//
//   PIPELAB_ASSIGN_OR_RETURN(const MachineMeasurements m, MeasureMachine(CalibrationOptions()));
//   PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, SpecificationOf(m));
//   WriteFileAtomically("here.json", ClusterToJson(cluster));
//
// The device is an in-process one: a thread, on one core. In the specification each has a core of
// its own, which is what a replay is of, too (pipelines/sim/replay.h): where devices outnumber
// cores they take turns, and wall clocks show that.
//
// Errors: those of the communicator; FailedPrecondition where measurements make no specification.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_CALIBRATION_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_CALIBRATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "experiments/calibration/kernel_probe.h"
#include "experiments/calibration/kernel_times.h"
#include "experiments/calibration/link_times.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct CalibrationOptions {
  ProbeSizes sizes = ProbeSizes::kAll;
  KernelTimesOptions kernels;
  LinkTimesOptions link;
  int rounds = 8;
  absl::Duration limit = absl::Seconds(90);  // no round but the first begins after it
  bool progress = true;                      // on standard error
};

// Seconds to spare: a few of each measurement, for a first look and for tests.
CalibrationOptions QuickCalibration();

struct MachineMeasurements {
  std::string processor;  // "Intel(R) Xeon(R) Processor"
  int cores = 1;
  int64_t memory_bytes = 0;
  std::vector<KernelProbe> probes;
  std::vector<KernelTime> times;  // [probe]
  KernelTime launch;
  LinkTimes link;
};

absl::StatusOr<MachineMeasurements> MeasureMachine(const CalibrationOptions& options);

// The same from kernels that were measured already, in turns with something else.
MachineMeasurements MeasurementsOf(const KernelMeasurements& kernels, const LinkTimes& link);

// "name" of the result is "measured"; it satisfies CheckCluster, and holds no date and no host's
// name.
absl::StatusOr<ClusterSpec> SpecificationOf(const MachineMeasurements& measured);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_CALIBRATION_H_
