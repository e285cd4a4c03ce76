// The staleness rules of asynchronous schemes as their papers publish them, for a serial loop that
// trains as such a scheme must.
//
//   PIPELAB_ASSIGN_OR_RETURN(serial.staleness, PublishedStaleness(training->program().schedule));
//   serial.stage_of_layer = training->partition().stage_of_layer;
//
// PipeDream (Narayanan et al., SOSP 2019): stage k of n computes with w^(t-n+k), k from 1, and each
// micro-batch makes one update; vertical sync: all stages with t - n + 1.
// PipeDream-2BW (ICML 2021): W(t+1) = W(t) - nu grad f(W(t-1)), t counting groups of micro-batches.
//
// PPLL (arXiv 2411.12780): the newest weights; steps in the order, so that no flush is needed.
// PARTIME (arXiv 2210.09147): the newest weights, an update a micro-batch, and across each boundary
// the gradient of the micro-batch two before.
//
// A rule is a formula of stage and micro-batch: nothing of it is read off a schedule's order, but
// for how many optimizer steps there are.
#ifndef PIPELAB_PIPELINES_RUNTIME_STALENESS_H_
#define PIPELAB_PIPELINES_RUNTIME_STALENESS_H_

#include "absl/status/statusor.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// NotFound for a schedule of another name, or without steps in its order.
absl::StatusOr<Staleness> PublishedStaleness(const Schedule& schedule);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_STALENESS_H_
