// A planner's plans of one network at every size of micro-batches, each run through the simulator:
// what the GraphPipe study compares.
//
//   PlanSweepOptions options;
//   options.cluster = &cluster;  options.devices = 8;
//   PlanSweep sweep = SweepPlans(net, PipeDreamMethod(), options);
//   sweep.best()->throughput;                       // samples a second
//
// Every planner is asked once for each size, with the operators' times at that size, and the best
// of its plans by simulation counts: no planner has another selection. Its plan becomes a
// pipeline and a whole training step is simulated: fill, drain, messages over the cluster's links,
// sums of gradients, Adam. Plans of sequential planners run as sequential pipelines do: each stage
// after the one before it, whether it takes something from it or not. Of ways to run a plan that it
// leaves open (copies that take turns or share rows, which node has which stages) the fastest that
// fits counts; what does not fit into memory does not.
#ifndef PIPELAB_EXPERIMENTS_GRAPH_PLANS_PLAN_SWEEP_H_
#define PIPELAB_EXPERIMENTS_GRAPH_PLANS_PLAN_SWEEP_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "experiments/graph_plans/study_nets.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_point.h"

namespace pipelab {

struct PlanMethod {
  std::string name;     // for tables
  std::string planner;  // planners.h
  PlanObjective objective = PlanObjective::kStageTime;
  bool chain = true;  // runs as a sequential pipeline
  // The operators are put in one line first: what the same planner finds of sequential pipelines.
  bool line = false;
  // It plans for a size that is given in PlannerOptions, or chooses each stage's own: it is asked
  // for both.
  bool chooses_sizes = false;
  // PipeDream's planner sums gradients after each mini-batch that goes through its pipeline. Here:
  // once a step, which is what synchronous training does with its micro-batches.
  bool sums_once_per_step = false;
};

PlanMethod PipeDreamMethod();  // as published
PlanMethod PipeDreamOnceAStepMethod();
PlanMethod PiperMethod();
PlanMethod GraphPipeMethod();
// GraphPipe's planner on the line of operators.
PlanMethod SequentialMethod();

struct PlanSweepOptions {
  const ClusterSpec* cluster = nullptr;
  NumberType type = NumberType::kFp32;
  int64_t devices = 4;
  double batch_factor = 1;                                   // of the net's samples a device
  absl::Duration time_limit = absl::Seconds(10);             // of one search
  int64_t most_steps = std::numeric_limits<int64_t>::max();  // PlannerOptions
  // Sizes of micro-batches: all powers of two that make at most so many of a batch.
  int64_t most_micro_batches = 512;
};

// Samples of a step.
int64_t BatchOf(const StudyNet& net, const PlanSweepOptions& options);

// One plan, run.
struct PlanRun {
  int64_t micro_batch_size = 0;  // that the planner was asked for; 0: it chose
  PlanState state = PlanState::kInfeasible;
  std::string missing;  // why there is no plan, or why it does not count; empty: it does
  absl::Duration search_time;
  bool stopped = false;  // the search, by its time limit: another run may find another plan
  Plan plan;
  int64_t batch_samples = 0;
  double throughput = 0;  // samples a second
  Bytes memory;           // of the fullest device
  double bubble = 0;      // 1 - compute / (devices * step); sums of gradients are in it
  int stages = 0, depth = 0;
  int64_t most_copies = 0;          // of a stage
  int64_t largest_micro_batch = 0;  // of a stage
};

struct PlanSweep {
  std::vector<PlanRun> runs;
  absl::Duration search_time;  // of all of them

  const PlanRun* best() const;              // the highest throughput; null where nothing counts
  const PlanRun* best_of_one_size() const;  // of runs that were asked for a size
  const PlanRun* Find(int64_t micro_batch_size) const;
  std::string WhyNone() const;
  int Stopped() const;  // searches that their time limit ended
};

absl::StatusOr<PlanSweep> SweepPlans(const StudyNet& net, const PlanMethod& method,
                                     const PlanSweepOptions& options);

// A plan, run; without `chain` stages wait for what they take alone, also those of sequential
// planners.
PlanRun RunPlan(const StudyNet& net, const PlanProblem& problem, const Plan& plan, bool chain,
                const PlanSweepOptions& options);

// The ratio of the first to the second; 0 where there is none.
double ThroughputRatio(const PlanRun* a, const PlanRun* b);

// With times at `samples`; for a planner that chooses sizes at all powers of two.
absl::StatusOr<PlanProblem> StudyProblem(const StudyNet& net, const PlanMethod& method,
                                         int64_t samples, const PlanSweepOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_PLANS_PLAN_SWEEP_H_
