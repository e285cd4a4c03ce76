// What is known of the catalogue's schemes in closed form: makespan, bubble, activations in flight
// and weights held, as formulas that docs/schedules.md prints and closed_forms_test evaluates
// against the simulator.
//
//   PIPELAB_ASSIGN_OR_RETURN(const FormulaValues values, ValuesOf("1f1b", {4, 8}));
//   const ClosedForm* form = FindClosedForm("1f1b", {4, 8});   // nullptr: none is known
//   EvaluateFormula(form->makespan, values)                    // 33
//
// Times: F = 1, B = 2, I = W = 1 for a stage and a micro-batch of the schedule, of which a token
// slice takes its share; messages take none.
// Papers: each scheme's own; sums of simulated schedules where the paper has none.
#ifndef PIPELAB_PIPELINES_SCHEDULES_CLOSED_FORMS_H_
#define PIPELAB_PIPELINES_SCHEDULES_CLOSED_FORMS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/formula.h"

namespace pipelab {

// Formulas (formula.h) in
//   P devices, M micro-batches, V virtual stages, r a device's number (from 0),
//   g the largest group of micro-batches, or tawpipe's of devices (--group_size),
//   f pairs of pipelines (--replicas / 2),
//   u micro-batches of an update (--update_interval), s token slices (--slices), T the makespan.
struct ClosedForm {
  absl::string_view scheme;
  absl::string_view holds;      // for the sizes for which this is not 0
  absl::string_view makespan;   // T
  absl::string_view bubble;     // idle time / (P T)
  absl::string_view in_flight;  // the most stage activations on device r, each from F to B or W
                                // but while it is at the host; of token slices where there are
  absl::string_view weights;    // the most stage weights on device r, older versions included
  Concatenation concatenation = Concatenation::kDirect;
};

// Weights that travel (ir/weight_ring.h), where messages do take time: turns of all devices at
// once. In lock step a turn begins on all devices together and lasts as long as the longest work of
// one.
struct RingForm {
  absl::string_view scheme;
  absl::string_view holds;
  absl::string_view turns;          // with passes
  absl::string_view lock_step;      // their time
  absl::string_view weight_hops;    // of all devices in a step, of a stage's weights each
  absl::string_view gradient_hops;  // of a stage's sum of gradients
};

// In the order of the catalogue; of a scheme's forms the first that holds.
absl::Span<const ClosedForm> ClosedForms();

// The letters above, but for r and T; r is 0. Fails where the scheme does.
absl::StatusOr<FormulaValues> ValuesOf(absl::string_view scheme, SchemeParams params);

absl::Span<const RingForm> RingForms();

// nullptr where none is known.
const ClosedForm* FindClosedForm(absl::string_view scheme, const SchemeParams& params);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_CLOSED_FORMS_H_
