// Operators in topological order as a chain, for planners of consecutive stages: what ranges of it
// cost.
//
//   ChainCosts chain(problem);
//   chain.Times(3, 7, /*mode=*/0, /*copies=*/2).forward;  // of a micro-batch that two copies share
//   chain.CutBytes(7);                                    // what goes from [0, 7) to the rest
//
// Mode 0 runs operators plainly, mode 1 those that can recompute so. Tensor-parallel degree 1.
#ifndef PIPELAB_PIPELINES_PLANNERS_CHAIN_COSTS_H_
#define PIPELAB_PIPELINES_PLANNERS_CHAIN_COSTS_H_

#include <cstdint>
#include <vector>

#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

class ChainCosts {
 public:
  explicit ChainCosts(const PlanProblem& problem);

  int size() const { return static_cast<int>(order_.size()); }
  int modes() const { return modes_; }  // 1: nothing can recompute

  // Operators [begin, end). Of the problem's micro-batch, divided among so many copies.
  PlanTimes Times(int begin, int end, int mode, int64_t copies) const;
  double Parameters(int begin, int end, int mode) const {
    return parameters_[mode][end] - parameters_[mode][begin];
  }
  // A device of a stage with so many micro-batches in flight.
  double Memory(int begin, int end, int mode, int64_t copies, int64_t in_flight) const;
  double CutBytes(int cut) const { return cut_bytes_[cut]; }
  // Least time of one device, forward and all, for operators [0, end): no number of copies is
  // better.
  PlanTimes Work(int end) const { return work_[end]; }

  PlanStage Stage(int begin, int end, int mode) const;  // without devices

 private:
  const PlanVariant& Variant(int place, int mode) const;

  const PlanProblem& problem_;
  std::vector<int> order_;
  std::vector<std::vector<int>> variants_;  // [mode][place]
  int modes_ = 1;
  // [mode][copies - 1][end], and [mode][end]: sums over [0, end).
  std::vector<std::vector<std::vector<PlanTimes>>> times_;
  std::vector<std::vector<double>> parameters_, in_flight_, fixed_;
  std::vector<PlanTimes> work_;
  std::vector<double> cut_bytes_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_CHAIN_COSTS_H_
