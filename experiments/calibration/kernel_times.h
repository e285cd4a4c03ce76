// How long kernels take here, on one in-process device: a thread with its arena and backend.
//
//   KernelMeasurements kernels(KernelProbes(ProbeSizes::kAll), KernelTimesOptions());
//   for (int round = 0; round < 5; ++round) kernels.MeasureRound();
//   kernels.Times()[0].seconds;              // of one call, processor time of the thread
//
// In training, a kernel runs once and then others do: its code and its weights have left the inner
// caches when it comes again, and what the kernel before it has written is in them. A kernel that
// is called in a loop of its own takes up to a half less, most of all a small one. So probes are
// put into groups of different kernels, about as many and as large as a stage's, and go around in a
// group; before each call its hot tensors are written, and each call is timed alone. What a call
// takes in a round is the mean over some turns, as a stage's time is a sum and not a sum of
// medians; and over rounds the median, so that what disturbs the machine for some seconds does not
// count. Rounds may take turns with other measurements.
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_KERNEL_TIMES_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_KERNEL_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "experiments/calibration/kernel_probe.h"
#include "experiments/calibration/launch_time.h"

namespace pipelab {

struct KernelTimesOptions {
  int turns = 4;  // of a group in a round, behind one that warms up
  int group_probes = 32;
};

struct KernelTime {
  double seconds = 0;  // of one call
  double spread = 0;   // between rounds: (third quartile - first) / median; 0 for fewer than four
  int rounds = 0;
};

class KernelMeasurements {
 public:
  KernelMeasurements(std::vector<KernelProbe> probes, const KernelTimesOptions& options);

  const std::vector<KernelProbe>& probes() const { return probes_; }
  // All of them, and the launch.
  void MeasureRound() { MeasurePart(0, 1); }
  // One part of a round, for who measures something else in between: each part of a round once.
  void MeasurePart(int part, int parts);
  // After one round at least (CHECKed).
  std::vector<KernelTime> Times() const;  // [probe]
  // What an operation takes beside its kernel (launch_time.h).
  KernelTime Launch() const;

 private:
  // Prepares, runs and drops one group, of the probes with these indices.
  void MeasureGroup(absl::Span<const int> group);

  const std::vector<KernelProbe> probes_;
  const KernelTimesOptions options_;
  std::vector<std::vector<int>> groups_;
  std::vector<std::vector<double>> seconds_;  // [probe][round]
  LaunchProbe launch_probe_;
  std::vector<double> launch_;
};

// The middle of an odd number, the mean of the two middle ones of an even number; at least one.
double Median(std::vector<double> values);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_KERNEL_TIMES_H_
