// What a stage of Piper's planner costs, from sums over the sets of a lattice.
//
//   PiperCosts costs(problem, groups, sets);       // sets[u]: what comes last
//   PiperStage s;
//   if (costs.Sum(u, later, t, &s)) s.Time(d);     // the stage sets[u] \ sets[later], plain
//   costs.Fits(u, later, t, s, y, slack);          // y micro-batches in flight, some recomputing
//
// A stage of degree t and d copies takes (time + (d - 1) sync) / d, where `time` has the compute
// and what goes over its boundary. An edge that goes past a stage is in neither of the two sums
// over cuts that make up a boundary: Sum takes it out again.
#ifndef PIPELAB_PIPELINES_PLANNERS_PIPER_COSTS_H_
#define PIPELAB_PIPELINES_PLANNERS_PIPER_COSTS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "pipelines/planners/copies_search.h"
#include "pipelines/planners/downsets.h"
#include "pipelines/planners/equal_branches.h"
#include "pipelines/planners/memory_modes.h"
#include "pipelines/planners/plan_groups.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

struct PiperStage {
  double time = 0, sync = 0;  // of the fastest variants
  double in_flight_bytes = 0, fixed_bytes = 0;
  double in_flight_savings = 0, fixed_savings = 0;  // no more can be saved by recomputing

  double Time(int64_t d) const {
    return (time + sync * static_cast<double>(d - 1)) / static_cast<double>(d);
  }
  // Fewer copies take `upper` or longer.
  double Fewest(double upper) const {
    if (time < upper) return 1;
    if (sync >= upper) return std::numeric_limits<double>::infinity();
    return (time - sync) / (upper - sync) * (1 - 1e-9);
  }
};

// The least time over the variants, on all devices of its degree together.
double LeastDeviceTime(const PlanOperator& o);

class PiperCosts {
 public:
  // `equal`: the branches whose cuts `sets` has once (groups are single operators), or null. Then
  // only Sum knows what a stage sends, and LeastTime does not.
  PiperCosts(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
             const EqualBranches* equal, absl::Time deadline);

  // The deadline passed before all sums were known: nothing else is to be used.
  bool stopped() const { return stopped_; }
  const Downsets& sets() const { return sets_; }
  const std::vector<int>& degrees() const { return degrees_; }
  // Whether an operator's variants of one degree differ in time and memory alone, and two at most
  // are worth anything. Else only LeastTime is to be used.
  bool uniform() const { return uniform_; }
  // Numbers of copies that a stage may have: divisors of the micro-batches, ascending.
  const std::vector<int>& copies() const { return copies_; }

  // False: an operator of the stage does not have the degree (an index into degrees()). With equal
  // branches `time` is a bound until Finish.
  bool Sum(int set, int later, int t, PiperStage* stage) const {
    const Sums &a = sums_[t][set], &b = sums_[t][later];
    if (a.lacking != b.lacking) return false;
    stage->time = a.time - b.time + a.in + b.out;
    stage->time -= equal_ == nullptr ? Past(set, later, t) : std::min(a.in + a.out, b.in + b.out);
    stage->sync = a.sync - b.sync;
    stage->in_flight_bytes = a.in_flight_bytes - b.in_flight_bytes;
    stage->fixed_bytes = a.fixed_bytes - b.fixed_bytes;
    stage->in_flight_savings = (a.in_flight_savings - b.in_flight_savings) * kSavings;
    stage->fixed_savings = (a.fixed_savings - b.fixed_savings) * kSavings;
    return true;
  }
  // True: `time` is longer than Sum's bound, or as long.
  bool Finish(int set, int later, int t, PiperStage* stage) const {
    if (equal_ == nullptr) return false;
    const Sums &a = sums_[t][set], &b = sums_[t][later];
    stage->time = a.time - b.time + a.in + b.out - PastOfEqual(set, later, t);
    return true;
  }
  // Stages over the sets, the first one first: with no more edges cut than Sum says.
  void Rearrange(std::vector<PlanStage>* stages) const {
    if (equal_ != nullptr) equal_->Rearrange(stages);
  }
  // Whether y micro-batches in flight fit where at most `slack` may be added to `time` by
  // recomputing. Exact.
  bool Fits(int set, int later, int t, const PiperStage& stage, int64_t y, double slack) const {
    const double missing = Missing(stage, y);
    if (missing <= 0) return true;
    const RecomputeTime time = Recompute(set, later, t, stage, y);
    if (time.enough <= slack) return true;
    return time.least <= slack && ExactRecompute(set, later, t, stage, y, time) <= slack;
  }
  // What recomputing adds to `time`.
  RecomputeTime Recompute(int set, int later, int t, const PiperStage& stage, int64_t y) const {
    const double missing = Missing(stage, y);
    if (missing <= 0) return {0, 0};
    if (missing > stage.in_flight_savings * static_cast<double>(y) + stage.fixed_savings) {
      return {kNever, kNever};
    }
    return Knapsack(set, later, t, y, missing);
  }
  double ExactRecompute(int set, int later, int t, const PiperStage& stage, int64_t y,
                        const RecomputeTime& bounds) const;
  struct Choice {
    double time = std::numeric_limits<double>::infinity();  // infinite: nothing fits
    std::vector<int> operators, variants;                   // of each operator
  };
  // The stage's least time, at most `most`, with any variants.
  Choice LeastTime(int set, int later, int t, int64_t d, int64_t y, double most) const;

  // Device time that the operators of the set need at least, whatever their stages: with what goes
  // over the cut below the set, or with what goes over its upper cut.
  double Work(int set) const { return work_[set]; }
  double WorkAbove(int set) const { return work_.back() - work_[set] + least_out_[set]; }
  bool exact() const { return exact_; }

 private:
  struct Sums {
    double time = 0, sync = 0, in_flight_bytes = 0, fixed_bytes = 0;
    double in_flight_savings = 0, fixed_savings = 0;
    double in = 0, out = 0;  // what the stages after and before the cut pay for it
    int lacking = 0;
  };
  struct Past_ {
    int source = 0;  // group
    double time = 0;
  };
  struct SlowMode {                                         // of operators that can recompute alike
    double time = 0, in_flight_bytes = 0, fixed_bytes = 0;  // besides the fastest variant
  };

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kSavings = 1 + 1e-9;  // sums differ in their last digits

  void FindDegrees();
  void AddOperators();
  // The sums of the operators of degree t; `slow_of` gets the class in modes_ of each operator that
  // can recompute.
  std::vector<Sums> SumsOfGroups(int t, std::vector<int>* slow_of);
  void AddWork();
  void AddCuts(absl::Time deadline);
  void SetSlowModes(int t, const std::vector<int>& slow_of);
  const PlanVariant& Fastest(int v, int degree) const;
  double Missing(const PiperStage& stage, int64_t y) const {
    return stage.in_flight_bytes * static_cast<double>(y) + stage.fixed_bytes - room_;
  }
  double Past(int set, int later, int t) const {
    double time = 0;
    for (int i = past_begin_[later]; i < past_begin_[later + 1]; ++i) {
      if (!sets_.Has(set, past_[t][i].source)) time += past_[t][i].time;
    }
    return time;
  }
  // As many as can be past the stage.
  double PastOfEqual(int set, int later, int t) const;
  RecomputeTime Knapsack(int set, int later, int t, int64_t y, double missing) const;
  struct Saving {  // of a class of slow modes, by recomputing one operator
    int mode = 0;
    double bytes = 0, time = 0;
  };
  // Those that cost least for a byte first.
  const std::vector<Saving>& Savings(int t, int64_t y) const;

  const PlanProblem& problem_;
  const OperatorGroups& groups_;
  const Downsets& sets_;
  const EqualBranches* const equal_;
  const double room_;
  std::vector<int> degrees_, copies_;
  bool uniform_ = true, stopped_ = false;
  mutable bool exact_ = true;

  std::vector<std::vector<Sums>> sums_;             // [t][set]
  std::vector<int> past_begin_;                     // [set]: edges over the cut by their source
  std::vector<std::vector<Past_>> past_;            // [t]
  absl::optional<CutEdges> cut_edges_;              // of equal branches
  std::vector<std::vector<double>> class_time_;     // [t][class of edges]
  std::vector<double> work_, least_out_;            // [set]
  std::vector<std::vector<SlowMode>> modes_;        // [t][class]
  std::vector<std::vector<uint16_t>> mode_counts_;  // [t][set][class]
  struct KnownSavings {
    bool known = false;
    std::vector<Saving> savings;
  };
  mutable std::vector<std::vector<KnownSavings>> savings_;  // [t][y]
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_PIPER_COSTS_H_
