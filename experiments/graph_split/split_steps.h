// Steps of a graph network on this machine's cores, split over vertices and data-parallel, in turn
// and in one run: each member is a thread.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepTimes> times, MeasureSteps(text, size));
#ifndef PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_STEPS_H_
#define PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "models/data/text_graph.h"

namespace pipelab {

struct StepSize {
  int members = 2;
  int64_t batch = 1024, hidden = 256;
  std::vector<int> fanouts = {15, 10, 5};
  std::vector<int64_t> widths = {8, 64, 256, 512};  // of rows
  int steps = 5;                                    // timed, behind one that is not
};

// The times of one width for loading and computing, without sampling; the slowest member's, in ms.
struct StepTimes {
  int64_t width = 0;
  std::vector<double> split, data;  // [step]
  double rows = 0;                  // data-parallel over split, loaded by all members
  double exchanged_mib = 0;         // of split, a step

  double ratio() const;  // of the medians
};

absl::StatusOr<std::vector<StepTimes>> MeasureSteps(const TextGraph& text, const StepSize& size);
Table StepTable(const std::vector<StepTimes>& times, const StepSize& size);
std::vector<Claim> StepClaims(const std::vector<StepTimes>& times);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_SPLIT_SPLIT_STEPS_H_
