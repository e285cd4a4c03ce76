// What users of a served model see, of a plan and the trace of its program, simulated or executed.
//
//   const ServingFigures f = FiguresOf(plan, trace);
//   f.tokens_per_second;  f.first_token.p99;  f.device_use;
#ifndef PIPELAB_PIPELINES_SERVING_SERVING_FIGURES_H_
#define PIPELAB_PIPELINES_SERVING_SERVING_FIGURES_H_

#include <cstdint>
#include <vector>

#include "pipelines/ir/trace.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/units.h"

namespace pipelab {

struct Percentiles {
  Nanoseconds median, p99;
};
// The smallest value that so many percent do not exceed; zeros where there are none.
Percentiles PercentilesOf(std::vector<Nanoseconds> values);

struct ServingFigures {
  double tokens_per_second = 0;  // generated, over the time to the last one
  Percentiles first_token;       // from a request's arrival
  Percentiles between_tokens;    // of one request
  Percentiles request;           // from its arrival to its last token
  double device_use = 0;         // busy share of all devices' time
};

// A token is there when the last stage ends the pass that gives it.
ServingFigures FiguresOf(const PassPlan& plan, const Trace& trace);

// Requests that arrive at random, so many a second in the mean (a Poisson process), from 0 on: the
// same for a seed on every machine.
std::vector<Nanoseconds> RandomArrivals(int64_t count, double per_second, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_SERVING_FIGURES_H_
