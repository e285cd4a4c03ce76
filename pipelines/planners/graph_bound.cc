#include "pipelines/planners/graph_bound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "absl/types/optional.h"
#include "pipelines/planners/copies_search.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/equal_branches.h"
#include "pipelines/planners/piper_costs.h"
#include "pipelines/planners/piper_search.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/planners.h"
#include "pipelines/planners/relaxed_problem.h"

namespace pipelab {
namespace {

constexpr double kMemoryTolerance = 1e-12;  // relative
constexpr int kMostCuts = 150000;
constexpr double kFirstStep = 0.003, kGrowth = 1.5;  // of the bound
constexpr char kReason[] = "the best stages, if each had no more in flight than it must";

// [operator] The longest path of work that ends, or begins, with it.
struct Paths {
  std::vector<double> to, from;
  double longest = 0;
};

Paths PathsOf(const PlanProblem& relaxed) {
  Paths paths;
  for (const PlanOperator& o : relaxed.operators) paths.to.push_back(LeastDeviceTime(o));
  paths.from = paths.to;
  const std::vector<int> order = TopologicalOrder(relaxed);
  for (int v : order) {
    double before = 0;
    for (int e : relaxed.operators[v].in_edges) {
      before = std::max(before, paths.to[relaxed.edges[e].from]);
    }
    paths.to[v] += before;
    paths.longest = std::max(paths.longest, paths.to[v]);
  }
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    double after = 0;
    for (int e : relaxed.operators[*v].out_edges) {
      after = std::max(after, paths.from[relaxed.edges[e].to]);
    }
    paths.from[*v] += after;
  }
  return paths;
}

// What all passes over one problem share. Figures of a batch are over its micro-batches, so that
// they are stage times.
struct Relaxation {
  Relaxation(const PlanProblem& problem, const PlanProblem& relaxed_problem,
             const EqualBranches& equal, Downsets downsets, absl::Time deadline)
      : relaxed(relaxed_problem),
        groups(SingleGroups(relaxed)),
        sets(std::move(downsets)),
        edge_class(equal.EdgeClasses()),
        cut_edges(relaxed, groups, sets, edge_class, deadline),
        piper(relaxed, groups, sets, equal.any() ? &equal : nullptr, deadline),
        paths(PathsOf(relaxed)),
        pieces(BatchPieces(problem)),
        least_own(static_cast<double>(LeastCopySamples(problem)) /
                  static_cast<double>(problem.micro_batch_size)),
        any_size(!problem.micro_batch_sizes.empty()),
        most_own(any_size ? static_cast<double>(problem.micro_batch_sizes.back()) /
                                static_cast<double>(problem.micro_batch_size)
                          : 0) {
    path_to.resize(relaxed.edges.size());
    path_from.resize(relaxed.edges.size());
    for (size_t e = 0; e < relaxed.edges.size(); ++e) {
      path_to[edge_class[e]] = paths.to[relaxed.edges[e].from];
      path_from[edge_class[e]] = paths.from[relaxed.edges[e].to];
    }
  }

  // The longest path over an edge of `cut` that is not one of `other`.
  double Longest(int cut, int other, const std::vector<double>& path) const {
    double longest = 0;
    const auto others = cut_edges.of(other);
    auto same = others.begin();
    for (const CutEdges::Count& count : cut_edges.of(cut)) {
      while (same != others.end() && same->edge_class < count.edge_class) ++same;
      const bool in_both = same != others.end() && same->edge_class == count.edge_class;
      if (in_both && same->edges >= count.edges) continue;
      longest = std::max(longest, path[count.edge_class]);
    }
    return longest;
  }

  const PlanProblem& relaxed;
  const OperatorGroups groups;
  const Downsets sets;
  const std::vector<int> edge_class;  // [edge]
  const CutEdges cut_edges;
  const PiperCosts piper;
  const Paths paths;
  std::vector<double> path_to, path_from;  // [class of edges]
  const double pieces;                     // the problem's micro-batches of a batch
  const double least_own;                  // of a copy's micro-batch, in the problem's
  const bool any_size;
  const double most_own;  // of a stage's micro-batch; 0: as many as copies
};

// Plans whose longest stage takes less than `longest`, and with `batch` those of less time a batch.
class RelaxedCosts : public SequenceCosts {
 public:
  struct Stage : PiperStage {
    double rest = 0;            // of the longest path through the stage: what is outside of it
    int64_t copies_behind = 0;  // on the longest path
  };

  RelaxedCosts(const Relaxation& all, bool batch, double longest)
      : all_(all),
        batch_(batch),
        longest_(longest),
        room_(all.relaxed.memory_bytes * (1 + kMemoryTolerance)) {}

  const Downsets& sets() const { return all_.sets; }
  const std::vector<int>& copies() const { return all_.piper.copies(); }
  double room() const { return room_; }
  double Work(int set) const { return all_.piper.Work(set); }
  double WorkAbove(int set) const { return all_.piper.WorkAbove(set); }
  bool Sum(int set, int later, Stage* stage) const { return all_.piper.Sum(set, later, 0, stage); }
  bool Finish(int set, int later, Stage* stage) const {
    const bool longer = all_.piper.Finish(set, later, 0, stage);
    const bool tight = std::isfinite(all_.relaxed.memory_bytes);
    if (std::isinf(longest_) || (!batch_ && !tight)) return longer;  // paths do not matter
    const double behind = all_.Longest(later, set, all_.path_from);
    stage->rest = batch_ ? all_.Longest(set, later, all_.path_to) + behind : 0;
    stage->copies_behind = static_cast<int64_t>(std::ceil(behind / longest_ * (1 - 1e-9)));
    return longer;
  }
  // Counts a copy's smallest micro-batches, where sizes are free: those of a larger one keep as
  // much in parts of it.
  int64_t InFlight(const Stage& stage, int copies, int /*copies_behind*/) const {
    if (all_.any_size) return 1 + stage.copies_behind / copies;
    return 1 + (stage.copies_behind + copies - 1) / copies;
  }
  double Value(const Stage& stage, int copies, double time) const {
    if (!batch_ || std::isinf(longest_)) return time;
    const double own = all_.any_size ? all_.most_own : copies;
    const double steady = std::max(all_.pieces - own, 0.0) * time;
    const double through = all_.pieces * time + all_.least_own * stage.rest;
    return std::max(through, steady + all_.least_own * all_.paths.longest) / all_.pieces;
  }
  RecomputeTime Recompute(int set, int later, const Stage& stage, int64_t y) const {
    return all_.piper.Recompute(set, later, 0, stage, y);
  }
  double ExactRecompute(int set, int later, const Stage& stage, int64_t y,
                        const RecomputeTime& time) const {
    return all_.piper.ExactRecompute(set, later, 0, stage, y, time);
  }

 private:
  const Relaxation& all_;
  const bool batch_;
  const double longest_, room_;
};

// One search, over plans below `known`.
struct Pass {
  double value = 0;
  std::vector<PlanStage> stages;
  bool stopped = false;
};

Pass SearchBelow(const Relaxation& all, bool batch, double known, absl::Time deadline) {
  const double upper = batch ? known / all.pieces : known;
  const RelaxedCosts costs(all, batch, upper);
  const auto most = static_cast<int>(std::min(all.relaxed.devices, all.relaxed.micro_batches));
  CopiesSearch<RelaxedCosts> search(costs, most, upper);
  const CopiesResult found = search.Run(deadline);
  Pass pass;
  pass.stopped = found.stopped;
  pass.value = found.stages.empty() ? known : found.value * (batch ? all.pieces : 1);
  for (const CopiesStage& s : found.stages) {
    RelaxedCosts::Stage stage;
    costs.Sum(s.set, s.later, &stage);
    costs.Finish(s.set, s.later, &stage);
    pass.stages.push_back(
        MakePiperStage(all.piper, s.set, s.later, 0, s.copies, costs.InFlight(stage, s.copies, 0)));
  }
  all.piper.Rearrange(&pass.stages);
  return pass;
}

// Searches for plans of little more than the bound are quick: `below` grows until there is one. Of
// plans below that more may be known to be in flight, so that it begins anew.
void RaiseBound(const Relaxation& all, bool batch, double known, absl::Time deadline,
                GraphBound* bound) {
  double most = known, step = kFirstStep;
  while (bound->value < most) {
    const bool last = bound->value == 0 || std::isinf(known);
    const double below = last ? most : std::min(most, bound->value * (1 + step));
    Pass pass = SearchBelow(all, batch, below, deadline);
    if (pass.stopped) return;
    bound->infeasible = std::isinf(pass.value);
    if (bound->infeasible) return;
    if (pass.value > bound->value) {
      bound->value = pass.value;
      bound->reason = kReason;
    }
    if (!pass.stages.empty()) {
      bound->stages = std::move(pass.stages);
      if (last || step == kFirstStep || std::isinf(all.relaxed.memory_bytes)) return;
      most = below;
    }
    step = pass.value < below ? kFirstStep : kGrowth * step;
  }
}

// Piper's own search, for operators with several degrees: with one micro-batch in flight.
void BoundOfPiper(const PlanProblem& relaxed, bool batch, double pieces, double known,
                  absl::Time deadline, GraphBound* bound) {
  PlanProblem one_in_flight = relaxed;
  for (PlanOperator& o : one_in_flight.operators) {
    for (auto& [degree, variants] : o.variants) {
      for (PlanVariant& v : variants) v.fixed_bytes += std::exchange(v.in_flight_bytes, 0);
    }
  }
  PlannerOptions options;
  options.time_limit = deadline - absl::Now();
  options.known_value = batch ? known / pieces : known;
  absl::StatusOr<Plan> plan = PiperPlan(one_in_flight, options);
  if (!plan.ok()) return;
  bound->infeasible = plan->state == PlanState::kInfeasible && std::isinf(known);
  bound->stages = std::move(plan->stages);
  const double value = plan->lower_bound * (batch ? pieces : 1);
  if (value <= bound->value) return;
  bound->value = value;
  bound->reason = "the best stages, if each kept one micro-batch";
}

}  // namespace

GraphBound BoundOfGraphPlans(const PlanProblem& problem, bool batch, double known,
                             absl::Time deadline) {
  GraphBound bound;
  bound.value = SimpleLowerBound(problem, PlanObjective::kGraphStageTime);
  bound.reason = "the work of all operators over the devices, or the largest operator";
  if (batch) bound.value *= BatchPieces(problem);
  if (absl::Now() > deadline) return bound;
  const PlanProblem relaxed = RelaxedProblem(problem);
  const EqualBranches equal(relaxed);
  absl::optional<Downsets> sets = Downsets::Make(equal.InOrder(SingleGroups(relaxed)), kMostCuts);
  bound.too_many_cuts = !sets.has_value();
  if (bound.too_many_cuts || absl::Now() > deadline) return bound;
  const Relaxation all(problem, relaxed, equal, *std::move(sets), deadline);
  if (all.cut_edges.stopped() || all.piper.stopped()) return bound;
  if (!SuitsPiperByCopies(all.piper, all.relaxed)) {
    BoundOfPiper(all.relaxed, batch, all.pieces, known, deadline, &bound);
    return bound;
  }
  RaiseBound(all, batch, known, deadline, &bound);
  return bound;
}

}  // namespace pipelab
