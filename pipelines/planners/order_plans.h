// The best plan of a graph pipeline whose stages are runs of a given order of the operators.
//
//   GraphGoal goal = {.batch = true};
//   std::vector<PlanStage> stages = BestOfOrder(sets, order, goal, known_value, &effort);
//
// Every plan is made of runs of some order, so that a search over orders can reach all of them
// (graph_search.h). A dynamic program from the order's end: a label is what is planned, the devices
// it takes, its longest stage, and for each operator that feeds it the samples in flight and the
// time of the longest path behind it. Of labels with the same operators those are kept that no
// other beats in devices, longest stage, most samples and longest path: exact where one operator at
// a time feeds what is planned (a chain), or where memory and paths do not matter. An order is left
// where thousands of operators feed what is planned, all along (a wide star): labels of all places
// would take memory with the square of its length.
#ifndef PIPELAB_PIPELINES_PLANNERS_ORDER_PLANS_H_
#define PIPELAB_PIPELINES_PLANNERS_ORDER_PLANS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/plan.h"

namespace pipelab {

// What a search may still do. Steps are the same on every machine, so that what is found without a
// time limit does not depend on the clock.
class SearchEffort {
 public:
  SearchEffort(int64_t steps, absl::Time deadline) : steps_(steps), deadline_(deadline) {}

  // False: nothing is left.
  bool Spend(int64_t steps) {
    steps_ -= steps;
    since_look_ += steps;
    if (since_look_ > kStepsALook) {
      since_look_ = 0;
      timed_out_ = timed_out_ || absl::Now() > deadline_;
    }
    return steps_ > 0 && !timed_out_;
  }
  bool left() { return Spend(0); }
  bool timed_out() const { return timed_out_; }
  int64_t steps() const { return steps_; }
  absl::Time deadline() const { return deadline_; }

 private:
  static constexpr int64_t kStepsALook = 20000;
  int64_t steps_, since_look_ = 0;
  absl::Time deadline_;
  bool timed_out_ = false;
};

struct GraphGoal {
  bool batch = false;  // the batch's time, else the longest stage's
  double longest_stage = std::numeric_limits<double>::infinity();  // no stage takes longer
  // Stages are a sequence, in which each keeps what all behind it need: Piper's objective
  // (kStageTime) and memory. For problems without sizes of micro-batches, levels and latency.
  bool sequence = false;
};

// The best plan, of a value below `known`; empty where there is none, or the effort ended before.
std::vector<PlanStage> BestOfOrder(const OperatorSets& sets, const std::vector<int>& order,
                                   const GraphGoal& goal, double known, SearchEffort* effort);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_ORDER_PLANS_H_
