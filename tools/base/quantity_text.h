// Quantities as people write them in files: a number and a unit.
//
//   PIPELAB_ASSIGN_OR_RETURN(FlopsPerSecond peak, ParseQuantity<FlopsPerSecond>("125 Tflop/s"));
//   PIPELAB_ASSIGN_OR_RETURN(Bytes memory, ParseQuantity<Bytes>("16 GiB"));
//
// Units: flop (FLOP) and flop/s (FLOP/s, FLOPS) with k, M, G, T, P, E; B and B/s with the same
// (powers of 1000) or Ki, Mi, Gi, Ti, Pi (powers of 1024); bit/s (b/s, bps) with powers of 1000; s,
// ms, us, ns. b is a bit and B a byte. One space, or none, between number and unit. Bytes and
// nanoseconds are rounded to whole ones.
//
// Errors: InvalidArgument that shows the text and says what would be right, for a missing or
// another quantity's unit, a number that is negative, not finite, or too large to hold.
#ifndef PIPELAB_TOOLS_BASE_QUANTITY_TEXT_H_
#define PIPELAB_TOOLS_BASE_QUANTITY_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/units.h"

namespace pipelab {

// Bytes, Nanoseconds, Flops, BytesPerSecond or FlopsPerSecond.
template <typename Q>
absl::StatusOr<Q> ParseQuantity(absl::string_view text);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_QUANTITY_TEXT_H_
