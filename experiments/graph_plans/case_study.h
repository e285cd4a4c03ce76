// GraphPipe's case study (Jeon et al., ASPLOS 2025): two branches of four repeats on eight devices:
// a chain of eight stages, one repeat each, and a graph of depth four, in which the last repeats of
// both branches and the join share two devices.
//
//   PIPELAB_ASSIGN_OR_RETURN(CaseStudy study, RunCaseStudy(options));
//   report.AddTable(CaseStudyTable(study));
//   study.Gain();                       // published: 1.20
#ifndef PIPELAB_EXPERIMENTS_GRAPH_PLANS_CASE_STUDY_H_
#define PIPELAB_EXPERIMENTS_GRAPH_PLANS_CASE_STUDY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/graph_plans/plan_sweep.h"
#include "experiments/report/table.h"

namespace pipelab {

struct CaseStudy {
  PlanSweep chain, graph;  // at each size of micro-batches

  double Gain() const;  // the best of each; 0 where one is missing
};

// `options.devices` is not read: there are eight.
absl::StatusOr<CaseStudy> RunCaseStudy(PlanSweepOptions options);

Table CaseStudyTable(const CaseStudy& study);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPH_PLANS_CASE_STUDY_H_
