// One network on so many devices under all planners of the GraphPipe study, and the tables of many
// of these.
//
//   PIPELAB_ASSIGN_OR_RETURN(Comparison c, ComparePlanners(net, options));
//   c.Gain();                                  // GraphPipe over the better of PipeDream and Piper
//   report.AddTable(ThroughputTable("throughput", caption, {c, ...}));
//
// Throughput is simulated, search times are measured, ratios are computed.
#ifndef PIPELAB_EXPERIMENTS_GRAPH_PLANS_COMPARISON_H_
#define PIPELAB_EXPERIMENTS_GRAPH_PLANS_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/graph_plans/plan_sweep.h"
#include "experiments/report/table.h"

namespace pipelab {

struct Comparison {
  std::string net;
  int64_t devices = 0, batch = 0;
  double batch_factor = 1;  // PlanSweepOptions
  PlanSweep pipedream, piper, graphpipe;
  PlanSweep once_per_step;  // PipeDream's planner with gradients summed once a step
  PlanSweep sequential;     // GraphPipe's planner on the line of operators
  // The baseline's best plan with stages that wait for what they take alone.
  absl::optional<PlanRun> straight;

  // The best of PipeDream's plans, with either sum, and Piper's; null where there is none.
  const PlanRun* baseline() const;
  // GraphPipe's plan for the micro-batches of the best sequential one; null where there is none.
  const PlanRun* parallel_stages() const;

  // Gains of throughput; 0 where one is missing.
  double Gain() const;             // GraphPipe over the baseline
  double GainAsPublished() const;  // over PipeDream, sums after each micro-batch, and Piper
  double GainOfParallel() const;   // parallel stages alone, over sequential ones
  double GainOfSizes() const;      // with micro-batches of their own size too
  // Graph stages alone: one planner and one objective, micro-batches of their own size on both
  // sides; the rest of Gain() is what GraphPipe's planner counts and the baselines' do not.
  double GainOfGraph() const;

  int Stopped() const;  // searches that their time limit ended
};
int Stopped(const std::vector<Comparison>& all);

absl::StatusOr<Comparison> ComparePlanners(const StudyNet& net, const PlanSweepOptions& options);

// Best throughput of each planner and GraphPipe's gain.
Table ThroughputTable(std::string id, std::string caption, const std::vector<Comparison>& all);
// What the best plans are: micro-batch, stages, depth, copies, memory, bubble.
Table PlansTable(const std::vector<Comparison>& all);
// Throughput at each size of micro-batches.
Table SizesTable(const std::vector<Comparison>& all);
// From sequential stages to parallel ones to larger micro-batches, one planner.
Table AblationTable(const std::vector<Comparison>& all);
// What becomes of the gains in larger batches: `all` by net, each with its batches ascending.
Table BatchesTable(const std::vector<Comparison>& all);
// How long searches take, all sizes together.
Table SearchTable(const std::vector<Comparison>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_PLANS_COMPARISON_H_
