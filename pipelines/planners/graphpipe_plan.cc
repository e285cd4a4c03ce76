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
#include "pipelines/planners/graph_bound.h"
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

constexpr double kValueTolerance = 1e-12;  // relative
constexpr double kFrontReach = 1.1;        // what the simulator may see otherwise
constexpr double kFrontStep = 1.03;        // from bound to bound
constexpr int64_t kSteps = 90'000'000, kExactSteps = 20'000'000, kFrontSteps = 4'000'000;
constexpr int64_t kPatientSteps = 200'000;
// Nothing is a share of the best value (a question that few labels pass), then nothing is better.
struct ProofPass {
  double share;
  size_t most_labels;
};
constexpr ProofPass kProofPasses[] = {
    {1 / 1.05, 1}, {1 / 1.05, 16}, {1, 1}, {1, 16}, {1, std::numeric_limits<size_t>::max()}};
constexpr absl::Duration kMostOfBound = absl::Seconds(10);
constexpr int kFewRounds = 20, kSomeRounds = 300, kManyRounds = 3000;

absl::Status CheckGraphProblem(const PlanProblem& problem, const PlannerOptions& options) {
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

// One problem's searches, for one objective after the other.
class GraphPlanner {
 public:
  GraphPlanner(const PlanProblem& problem, const PlannerOptions& options)
      : problem_(problem),
        limited_(options.time_limit < absl::InfiniteDuration()),
        // A limit that is given is what ends the search.
        more_(limited_ ? 20 : 1),
        most_steps_(options.most_steps),
        deadline_(absl::Now() + options.time_limit),
        sets_(problem, options.micro_batch_size),
        sequence_(SequenceProblem(problem)),
        starts_(QuickStarts(sequence_, absl::Now() + options.time_limit / 8)) {}

  const GraphBound& bound() const { return bound_; }
  bool timed_out() const { return absl::Now() > deadline_; }

  Plan Best(bool batch) {
    GraphSearch search(sets_, {batch});
    SearchEffort effort(std::min(kSteps * more_, most_steps_), deadline_);
    for (const PlanStages& stages : starts_) search.OfferSequence(stages, &effort);
    search.TryOrdersOfGraph(kDepthFirstOrders, &effort);
    search.Improve({kFewRounds}, 0, &effort);
    FindBound(batch, 0.05, &search, &effort);
    // Whoever gives these planners the whole limit must not get more from them.
    if (!IsProven(search)) {
      OfferPiper(search.value() / Pieces(batch), 0.6, &search, &effort);
      OfferPipeDream(0.6, &search, &effort);
      if (limited_) FindBound(batch, 0.3, &search, &effort);
    }
    search.Improve({kSomeRounds}, bound_.value, &effort);
    bool proven = IsProven(search);
    if (!proven) {
      SearchEffort exact_effort(std::min(kExactSteps, most_steps_), Share(0.75));
      proven = Prove({batch}, &search, &exact_effort);
    }
    if (!proven) search.Improve({kManyRounds, kPatientSteps * (more_ - 1)}, bound_.value, &effort);
    // What is left of a limit is for the sequences that there was no time for.
    if (!proven && !piper_complete_ && limited_) {
      OfferPiper(search.value() / Pieces(batch), 1, &search, &effort);
    }
    // The bound is of plans below the known one, which may be better by now.
    if (!proven && search.value() < bound_known_) FindBound(batch, 1, &search, &effort);
    proven |= IsProven(search);
    Plan plan = PlanOf(search, batch);
    SetState(proven, timed_out(), &plan);
    return plan;
  }

  // Plans with ever longer stages and less to fill and drain.
  std::vector<Plan> Front() {
    std::vector<Plan> plans;
    GraphSearch shortest(sets_, {false});
    SearchEffort effort(std::min(kSteps / 4, most_steps_), deadline_);
    for (const PlanStages& stages : starts_) shortest.OfferSequence(stages, &effort);
    OfferPiper(kInfinity, 0.4, &shortest, &effort);
    OfferPipeDream(0.2, &shortest, &effort);
    shortest.TryOrdersOfGraph(kDepthFirstOrders, &effort);
    FindBound(/*batch=*/false, 0.5, &shortest, &effort);
    shortest.Improve({kFewRounds}, bound_.value, &effort);
    bound_.value *= BatchPieces(problem_);
    if (!shortest.has_plan()) return plans;
    const double pieces = BatchPieces(problem_);
    double best = kInfinity, last = 0;
    // A batch takes at least its pieces' time at the slowest stage. What the step up to the bound
    // leaves out was tried before.
    for (double bound = shortest.value(); bound / kFrontStep * pieces < best; bound *= kFrontStep) {
      GraphSearch search(sets_, {true, bound});
      SearchEffort some(std::min(kFrontSteps, most_steps_), deadline_);
      if (plans.empty()) {
        for (const PlanStages& stages : starts_) search.Offer(stages);
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
    for (const PlanStages& stages : starts_) {
      GraphSearch search(sets_, {true});
      if (search.Offer(stages) && search.value() <= kFrontReach * best) {
        plans.push_back(PlanOf(search, true));
      }
    }
    return plans;
  }

 private:
  // That is when this share of the time that is left is over.
  absl::Time Share(double share) const { return absl::Now() + (deadline_ - absl::Now()) * share; }
  // So many stage times make the objective.
  double Pieces(bool batch) const { return batch ? BatchPieces(problem_) : 1; }

  // A plan whose longest stage is below the known one's may be better than the search's.
  void OfferPiper(double known, double share, GraphSearch* search, SearchEffort* effort) {
    PiperStart start = StartOfPiper(sequence_, known, Share(share));
    piper_complete_ = start.complete;
    starts_.push_back(std::move(start.stages));
    search->OfferSequence(starts_.back(), effort);
  }
  void OfferPipeDream(double share, GraphSearch* search, SearchEffort* effort) {
    starts_.push_back(StartOfPipeDream(sequence_, Share(share)));
    search->OfferSequence(starts_.back(), effort);
  }

  // In a share of the time that is left. Its stages may be a plan, too.
  void FindBound(bool batch, double share, GraphSearch* search, SearchEffort* effort) {
    if (bound_.too_many_cuts) return;
    bound_known_ = search->value();
    GraphBound bound = BoundOfGraphPlans(problem_, batch, bound_known_,
                                         std::min(absl::Now() + kMostOfBound, Share(share)));
    search->OfferSequence(bound.stages, effort);
    if (bound.value >= bound_.value) bound_ = std::move(bound);
  }

  bool IsProven(const GraphSearch& search) const {
    return search.has_plan() ? search.value() <= bound_.value * (1 + kValueTolerance)
                             : bound_.infeasible;
  }

  // From a bound that is quick to the best of all plans, as far as the effort goes.
  bool Prove(const GraphGoal& goal, GraphSearch* search, SearchEffort* effort) {
    for (const ProofPass& pass : kProofPasses) {
      GraphExactOptions options;
      options.most_labels = pass.most_labels;
      const double known = search->value() * (1 - kValueTolerance);
      options.known_value = known * pass.share;
      if (OneDegree() && bound_.value >= options.known_value) continue;
      GraphExactResult exact = BetterGraphPlan(sets_, goal, options, effort);
      search->Offer(std::move(exact.stages));
      if (exact.lower_bound == 0) return false;
      if (OneDegree() && search->has_plan() && exact.lower_bound > bound_.value) {
        bound_.value = exact.lower_bound;
        bound_.reason = "the best stages, with the least that any plan has behind them";
      }
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
    plan.lower_bound = bound_.value;
    plan.bound_reason = bound_.reason;
    if (plan.has_plan()) plan.lower_bound = std::min(plan.lower_bound, plan.value);
    plan.peak_bytes = PeakBytes(problem_, plan.stages);
    return plan;
  }

  const PlanProblem& problem_;
  const bool limited_;
  const int more_;
  const int64_t most_steps_;
  const absl::Time deadline_;
  const OperatorSets sets_;
  const PlanProblem sequence_;
  std::vector<PlanStages> starts_;
  bool piper_complete_ = false;
  GraphBound bound_;  // of what was planned last
  double bound_known_ = kInfinity;
};

}  // namespace

absl::StatusOr<Plan> GraphPipePlan(const PlanProblem& problem, const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckGraphProblem(problem, options));
  return GraphPlanner(problem, options).Best(problem.objective == PlanObjective::kGraphBatchTime);
}

absl::StatusOr<std::vector<Plan>> GraphPipeFront(const PlanProblem& problem,
                                                 const PlannerOptions& options) {
  PIPELAB_RETURN_IF_ERROR(CheckGraphProblem(problem, options));
  GraphPlanner planner(problem, options);
  std::vector<Plan> plans = planner.Front();
  if (plans.empty()) {
    plans.emplace_back();
    plans[0].planner = "graphpipe";
    plans[0].objective = PlanObjective::kGraphBatchTime;
    plans[0].lower_bound = planner.bound().value;
  }
  for (Plan& plan : plans) SetState(/*complete=*/false, planner.timed_out(), &plan);
  return plans;
}

}  // namespace pipelab
