// What users see of a served list of requests, from a plan of passes and a trace of it, simulated
// or executed alike.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ServingFigures f, FiguresOf(plan, program, trace));
//   f.tokens_per_second;  f.first_token.p99;  f.device_use;
//
// A request's tokens are there when the last stage has ended the passes that predict them. Times
// are from its arrival.
#ifndef PIPELAB_PIPELINES_SERVING_SERVING_FIGURES_H_
#define PIPELAB_PIPELINES_SERVING_SERVING_FIGURES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "pipelines/analysis/arrivals.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"
#include "pipelines/serving/pass_plan.h"

namespace pipelab {

struct ServingFigures {
  int64_t tokens = 0;            // predicted
  double tokens_per_second = 0;  // from the first arrival to the last token
  TimeShares first_token;        // of requests
  TimeShares between_tokens;     // of all pairs of tokens that follow one another
  TimeShares latency;            // of requests, to the last token
  TimeShares queueing;           // of requests, until the first stage begins with it
  double device_use = 0;         // 1 - bubble (analysis/analysis.h)
};

// `program` is the plan's PassSchedule, lowered. InvalidArgument for a trace that is not one of the
// plan's passes.
absl::StatusOr<ServingFigures> FiguresOf(const PassPlan& plan, const Program& program,
                                         const Trace& trace);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_SERVING_FIGURES_H_
