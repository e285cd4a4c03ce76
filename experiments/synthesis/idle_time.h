// OptPipe's headline (arXiv 2510.05186, withdrawn): orders and offloads that are searched together,
// for each stage and micro-batch, take up to half the idle time off at the same memory. Here with
// equal times, over sizes; the paper's own sizes are not known.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<IdleRow> rows, RunIdleTimes(size));
//   report.AddTable(IdleTable(rows));
//   for (Claim& c : IdleClaims(rows)) report.AddClaim(std::move(c));
//
// A device has two half stages (F = I = W = 1) or one whole one (2). Copies of a pass, out and
// back, take as long as its F, I and W: the slowest link on which PipeOffload calls them free
// (OffloadRatio = 1, pipelines/cost/offload.h). Messages take no time.
#ifndef PIPELAB_EXPERIMENTS_SYNTHESIS_IDLE_TIME_H_
#define PIPELAB_EXPERIMENTS_SYNTHESIS_IDLE_TIME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "experiments/synthesis/synthesis_study.h"

namespace pipelab {

// What fits in a share of 1F1B's activations on its first device. Idle times are of one device, in
// forwards of a half stage; below 0: nothing fits.
struct IdleRow {
  int devices = 0, micro_batches = 0;
  double memory = 1;                   // of P activations of a whole device
  std::string scheme, offload_scheme;  // the best; empty: none fits
  double catalogue = -1;               // of schemes that do not offload
  double pipe_offload = -1;            // of gis, gis_h, po_h, po_f
  std::string placement, found_by;
  double synthesized = -1, bound = 0;  // `bound`: no order of any placement that was tried is below
  double seconds = 0;                  // of all searches for the row
  bool stopped = false;                // a limit of time ended one of them

  // The idle time of the better of both; below 0: nothing fits, or it has no idle time.
  double best() const;
};

// P of 4, 8 and 16 up to `size.idle_devices`, M of P, 2 P and 4 P, three memories.
absl::StatusOr<std::vector<IdleRow>> RunIdleTimes(const SynthesisStudySize& size);

Table IdleTable(const std::vector<IdleRow>& rows);
std::vector<Claim> IdleClaims(const std::vector<IdleRow>& rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_SYNTHESIS_IDLE_TIME_H_
