// Copies to the host for orders of passes that need more room than there is.
//
//   const OrderWords words = CopiesAsNeeded(problem, passes, /*lead=*/0);   // empty: no way
//   if (!words.empty()) ... FitsMemory(problem, d, words[d])
//
// Each device goes along its passes at the times that they have without a limit of memory. Where
// the next one does not fit, of the micro-batches that are held, and whose copy out would be over
// by then, the one whose I is the last goes to the host (Belady 1966), and the device begins anew.
// A copy out is made as soon as the one before is over; one back as late as the link allows, and
// `lead` times its length before.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_PLACE_COPIES_H_
#define PIPELAB_PIPELINES_SYNTHESIS_PLACE_COPIES_H_

#include "pipelines/synthesis/problem.h"

namespace pipelab {

OrderWords CopiesAsNeeded(const SynthesisProblem& problem, const OrderWords& passes, double lead);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_PLACE_COPIES_H_
