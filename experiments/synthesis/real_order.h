// A synthesized order, run: a small GPT on four devices of this process. Its passes are measured
// under zb1p, an order is synthesized for them, and the training goes on under that.
//
//   PIPELAB_ASSIGN_OR_RETURN(const RealOrder real, RunRealOrder(/*steps=*/12));
//   report.AddTable(RealOrderTable(real));
//
// Replayed with a core for each device, since there may be fewer here.
#ifndef PIPELAB_EXPERIMENTS_SYNTHESIS_REAL_ORDER_H_
#define PIPELAB_EXPERIMENTS_SYNTHESIS_REAL_ORDER_H_

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"

namespace pipelab {

struct RealOrder {
  double promised_ms = 0;    // of all passes, from the times measured before
  double replayed_ms = 0;    // of all passes, as they then ran
  double catalogue_ms = 0;   // of zb1p's, replayed from the times measured before
  bool same_losses = false;  // as under zb1p
};

absl::StatusOr<RealOrder> RunRealOrder(int steps);
Table RealOrderTable(const RealOrder& real);
Claim RealOrderClaim(const RealOrder& real);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SYNTHESIS_REAL_ORDER_H_
