// What studies that run real devices here have in common: times, medians, and whether each device
// had a core of its own, without which times say nothing of a pipeline.
//
//   const double ms = MillisecondsOf([&] { step = training->Step(); });
//   const double share = CoreShare(program, traces);
//   if (!HadOwnCores(share)) NotMade(&claim, NoOwnCores(share));
#ifndef PIPELAB_EXPERIMENTS_CALIBRATION_REAL_RUNS_H_
#define PIPELAB_EXPERIMENTS_CALIBRATION_REAL_RUNS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

template <typename Function>
double MillisecondsOf(Function function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  return time.count();
}

// The upper of the two middle ones, where their number is even; 0 of none.
double UpperMedian(std::vector<double> values);

// Processor time of the devices' compute, over its wall time.
double CoreShare(const Program& program, absl::Span<const Trace> steps);
bool HadOwnCores(double core_share);
std::string NoOwnCores(double core_share);  // why a claim is not made

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_CALIBRATION_REAL_RUNS_H_
