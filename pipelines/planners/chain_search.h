// The shortest batch (batch_time.h) of consecutive stages on devices in their order: what DAPPLE
// and BaPipe have in common.
//
//   ChainSearchOptions options;
//   options.copies = true;
//   ChainSearch search(problem, options, deadline);
//   search.Run();
//   search.stages(); search.complete();
//
// Stages are put in front of one another from the end. A label is the front stage's first operator
// and devices, the number of stages where memory is limited, and what the batch takes so far; those
// that are in nothing below another are dropped, and so are those whose bound is not below the best
// plan. First passes go on with the most promising few labels and give such a plan; the last pass
// keeps all and is exact, unless it takes too many steps.
#ifndef PIPELAB_PIPELINES_PLANNERS_CHAIN_SEARCH_H_
#define PIPELAB_PIPELINES_PLANNERS_CHAIN_SEARCH_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "pipelines/planners/batch_time.h"
#include "pipelines/planners/chain_costs.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// InvalidArgument, "--planner=PLANNER: ...", for problems that have no consecutive stages to plan,
// or more devices than are tried one by one.
absl::Status CheckForChainSearch(const PlanProblem& problem, absl::string_view planner);

struct ChainSearchOptions {
  bool copies = false;  // stages of several devices
  TransferKind transfers = TransferKind::kBesideCompute;
  int kfkb = 1;  // k of kFkB: stage i of S has k (S - i) micro-batches in flight
  double better_than = std::numeric_limits<double>::infinity();
};

class ChainSearch {
 public:
  ChainSearch(const PlanProblem& problem, const ChainSearchOptions& options, absl::Time deadline);
  void Run();

  const std::vector<PlanStage>& stages() const { return stages_; }  // empty: none is better
  double best() const { return best_; }
  bool complete() const { return complete_; }
  bool timed_out() const { return timed_out_; }
  double LowerBound() const;

 private:
  struct Label {
    BatchTimeFromEnd behind;
    BatchPassTimes
        front;         // where transfers are part of passes: the front stage, without what comes in
    double bound = 0;  // of all plans that end so
    int begin = 0, mode = 0;
    int64_t stages = 0, first = 0, copies = 0;  // of the front stage; devices from `first` on
    const Label* next = nullptr;
  };

  bool Pass(int width);
  void Extend(const Label& next);
  std::vector<int64_t> EndsInFrontOf(int64_t device) const;
  void AddStage(int begin, int64_t first, int64_t copies, double transfer,
                const BatchTimeFromEnd& behind, const Label& next);
  int64_t InFlight(const Label& label) const;
  double Speed(int64_t first, int64_t copies) const;
  double Bound(const Label& label, const BatchTimeFromEnd& all) const;
  static bool NotAbove(const Label& a, const Label& b);
  void Keep(const Label& label);
  void Finish(const Label& label, double time);

  const PlanProblem& p_;
  const ChainSearchOptions options_;
  const ChainCosts chain_;
  const absl::Time deadline_;
  int64_t unit_ = 1;            // devices of the innermost level
  std::vector<double> speeds_;  // [device] of all up to it
  int64_t steps_ = 0;
  bool stopped_ = false, timed_out_ = false, complete_ = false;
  std::deque<Label> labels_;
  // [begin][first device, copies, stages]
  std::vector<std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<const Label*>>> waiting_;
  double best_;
  std::vector<PlanStage> stages_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_CHAIN_SEARCH_H_
