// GraphPipe (Jeon et al., ASPLOS 2025): stages that form a DAG, so that branches run side by side,
// the pipeline is as deep as the longest path, and fewer micro-batches are in flight.
//
// Objectives: the longest stage time of `samples` samples (kGraphStageTime), or what a batch takes
// (kGraphBatchTime, where the problem asks for it), under the limit of memory with in-flight counts
// along the longest path (GraphInFlight).
//
// Starts from the plans of the sequential planners (graph_starts.h), none of which it is worse
// than, and of orders of the graph; a search over orders (graph_search.h) improves the best of
// them, until it has the lower bound's value. Where the graph is small, a search over all convex
// stages (graph_exact.h) improves the plan or proves it. Work is counted in steps, so that without
// a time limit the answer does not depend on how fast the machine is, unless a sequential planner
// takes longer than its ten seconds. With a limit there are more of them, and a search still ends
// by itself once it has no more to gain.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/planners/graph_exact.h"
#include "pipelines/planners/graph_search.h"
#include "pipelines/planners/graph_starts.h"
#include "pipelines/planners/graphpipe_front.h"
#include "pipelines/planners/operator_sets.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kSame = 1e-12;      // relative
constexpr double kFrontReach = 1.1;  // what the simulator may see otherwise
constexpr double kFrontStep = 1.03;  // from bound to bound
constexpr int64_t kSteps = 90'000'000, kExactSteps = 20'000'000, kFrontSteps = 4'000'000;
constexpr int64_t kPatientSteps = 200'000;
// Nothing is a share of the best value (a question that few labels pass), then nothing is better.
struct ProofPass {
  double share;
  size_t most_labels;
};
constexpr ProofPass kProofPasses[] = {
    {1 / 1.05, 1}, {1 / 1.05, 16}, {1, 1}, {1, 16}, {1, std::numeric_limits<size_t>::max()}};
constexpr int kDepthFirstOrders = 6, kFewRounds = 20, kSomeRounds = 300, kManyRounds = 3000;

absl::Status Check(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckHasPlainVariants(problem, "graphpipe"));
  if (problem.objective == PlanObjective::kMaxLoad) {
    return absl::InvalidArgumentError(
        "--planner=graphpipe: it cannot plan dnn-partitioning inputs");
  }
  const int64_t batch = BatchSamples(problem);
  if (options.micro_batch_size < 0 ||
      (options.micro_batch_size > 0 && batch % options.micro_batch_size != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stage_micro_batch_size=", options.micro_batch_size,
                     ": must divide the batch of ", batch));
  }
  return absl::OkStatus();
}

// In the problem's micro-batches.
double BatchPieces(const PlanProblem& problem) {
  return static_cast<double>(BatchSamples(problem)) / static_cast<double>(problem.micro_batch_size);
}

// One problem's searches, for one objective after the other.
class GraphPlanner {
 public:
  GraphPlanner(const PlanProblem& problem, const PlannerOptions& options)
      : problem_(problem),
        // A limit that is given is what ends the search.
        more_(options.time_limit == absl::InfiniteDuration() ? 1 : 20),
        deadline_(absl::Now() + options.time_limit),
        sets_(problem, options.micro_batch_size),
        quick_starts_(QuickStarts(problem, absl::Now() + options.time_limit / 4)) {}

  double LowerBound(bool batch) const {
    return starts_.lower_bound * (batch ? BatchPieces(problem_) : 1);
  }
  bool timed_out() const { return absl::Now() > deadline_; }

  Plan Best(bool batch) {
    GraphSearch search(sets_, {batch});
    SearchEffort effort(kSteps * more_, deadline_);
    for (const std::vector<PlanStage>& stages : quick_starts_) {
      search.OfferSequence(stages, &effort);
    }
    search.TryOrdersOfGraph(kDepthFirstOrders, &effort);
    search.Improve({kFewRounds}, 0, &effort);
    OfferStarts(batch, 0.5, &search, &effort);
    const double enough = LowerBound(batch);
    search.Improve({kSomeRounds}, enough, &effort);
    bool proven = search.value() <= enough * (1 + kSame);
    if (!proven) {
      SearchEffort exact_effort(kExactSteps, absl::Now() + (deadline_ - absl::Now()) / 2);
      bound_ = enough;
      proven = Prove({batch}, &search, &exact_effort);
    }
    if (!proven) search.Improve({kManyRounds, kPatientSteps * (more_ - 1)}, enough, &effort);
    // What is left of a limit is for the sequences that there was no time for.
    if (!proven && !starts_.complete && deadline_ != absl::InfiniteFuture()) {
      OfferStarts(batch, 1, &search, &effort);
    }
    proven |= search.value() <= LowerBound(batch) * (1 + kSame) ||
              (starts_.infeasible && !search.has_plan());
    Plan plan = PlanOf(search, batch);
    SetState(proven, timed_out(), &plan);
    return plan;
  }

  // Plans with ever longer stages and less to fill and drain.
  std::vector<Plan> Front() {
    std::vector<Plan> plans;
    GraphSearch shortest(sets_, {false});
    SearchEffort effort(kSteps / 4, deadline_);
    starts_ = ExactStarts(problem_, std::numeric_limits<double>::infinity(),
                          absl::Now() + (deadline_ - absl::Now()) / 2);
    starts_.plans.insert(starts_.plans.begin(), quick_starts_.begin(), quick_starts_.end());
    for (const std::vector<PlanStage>& stages : starts_.plans) {
      shortest.OfferSequence(stages, &effort);
    }
    shortest.TryOrdersOfGraph(kDepthFirstOrders, &effort);
    shortest.Improve({kFewRounds}, LowerBound(false), &effort);
    if (!shortest.has_plan()) return plans;
    const double pieces = BatchPieces(problem_);
    double best = std::numeric_limits<double>::infinity(), last = 0;
    // A batch takes at least its pieces' time at the slowest stage. What the step up to the bound
    // leaves out was tried before.
    for (double bound = shortest.value(); bound / kFrontStep * pieces < best; bound *= kFrontStep) {
      GraphSearch search(sets_, {true, bound});
      SearchEffort some(kFrontSteps, deadline_);
      if (plans.empty()) {
        for (const std::vector<PlanStage>& stages : starts_.plans) search.Offer(stages);
        search.Offer(shortest.stages());
      }
      // Later ones begin anew: not all are to be one plan.
      search.TryOrdersOfGraph(2, &some);
      search.Improve({kFewRounds}, 0, &some);
      if (timed_out() && !plans.empty()) break;
      if (!search.has_plan() || search.value() == last || search.value() > kFrontReach * best) {
        continue;
      }
      last = search.value();
      best = std::min(best, last);
      plans.push_back(PlanOf(search, true));
    }
    return plans;
  }

 private:
  // Plans of sequences that may be better than the search's, in a share of the time that is left.
  void OfferStarts(bool batch, double share, GraphSearch* search, SearchEffort* effort) {
    const double known = search->value() / (batch ? BatchPieces(problem_) : 1);
    SequentialStarts found =
        ExactStarts(problem_, known, absl::Now() + (deadline_ - absl::Now()) * share);
    found.lower_bound = std::max(found.lower_bound, starts_.lower_bound);
    starts_ = std::move(found);
    for (const std::vector<PlanStage>& stages : starts_.plans) {
      search->OfferSequence(stages, effort);
    }
  }

  // From a bound that is quick to the best of all plans, as far as the effort goes.
  bool Prove(const GraphGoal& goal, GraphSearch* search, SearchEffort* effort) {
    for (const ProofPass& pass : kProofPasses) {
      ExactOptions options;
      options.most_labels = pass.most_labels;
      const double known = search->value() * (1 - kSame);
      options.known_value = known * pass.share;
      if (OneDegree() && bound_ >= options.known_value) continue;
      ExactResult exact = BetterGraphPlan(sets_, goal, options, effort);
      search->Offer(std::move(exact.stages));
      if (exact.lower_bound == 0) return false;
      if (OneDegree() && search->has_plan()) bound_ = std::max(bound_, exact.lower_bound);
      if (exact.complete && options.known_value >= known) return OneDegree();
    }
    return false;
  }

  bool OneDegree() const {
    return std::all_of(problem_.operators.begin(), problem_.operators.end(),
                       [](const PlanOperator& o) { return o.variants.size() == 1; });
  }

  Plan PlanOf(const GraphSearch& search, bool batch) const {
    Plan plan;
    plan.planner = "graphpipe";
    plan.objective = batch ? PlanObjective::kGraphBatchTime : PlanObjective::kGraphStageTime;
    plan.stages = search.stages();
    plan.value = PlanValue(problem_, plan.objective, plan.stages);
    plan.lower_bound = LowerBound(batch);
    plan.bound_reason = starts_.bound_reason;
    if (bound_ > plan.lower_bound) {
      plan.lower_bound = bound_;
      plan.bound_reason = "the best stages, with the least that any plan has behind them";
    }
    if (plan.has_plan()) plan.lower_bound = std::min(plan.lower_bound, plan.value);
    plan.peak_bytes = PeakBytes(problem_, plan.stages);
    return plan;
  }

  const PlanProblem& problem_;
  const int more_;
  const absl::Time deadline_;
  const OperatorSets sets_;
  const std::vector<std::vector<PlanStage>> quick_starts_;
  SequentialStarts starts_;
  double bound_ = 0;  // of what was planned last, by its exact search
};

}  // namespace

absl::StatusOr<Plan> GraphPipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Check(problem, options));
  return GraphPlanner(problem, options).Best(problem.objective == PlanObjective::kGraphBatchTime);
}

absl::StatusOr<std::vector<Plan>> GraphPipeFront(const PlanProblem& problem,
                                                 const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(Check(problem, options));
  GraphPlanner planner(problem, options);
  std::vector<Plan> plans = planner.Front();
  if (plans.empty()) {
    plans.emplace_back();
    plans[0].planner = "graphpipe";
    plans[0].objective = PlanObjective::kGraphBatchTime;
    plans[0].lower_bound = planner.LowerBound(true);
  }
  for (Plan& plan : plans) SetState(/*proven=*/false, planner.timed_out(), &plan);
  return plans;
}

}  // namespace pipelab
