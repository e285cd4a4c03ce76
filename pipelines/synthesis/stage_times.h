// Times of stages from a file: given ones, or those of a run that happened.
//
//   PIPELAB_ASSIGN_OR_RETURN(StageTimes times, ParseStageTimes(text, "--times=mine.json"));
//   times.stages(), times.forward[0], times.hop
//
// Given ones, quantities with their units; what is in brackets may be left out:
//
//   {"stages": [{"forward": "1.5 ms", "backward_input": "2 ms", "backward_weight": "1 ms",
//                ["kept": "2 GiB", "kept_for_weight": "1 GiB", "state": "4 GiB"]}, ...],
//    ["hop": "20 us"]}
//
// Each but `state` may be a list, one for each token slice: {"forward": ["1 ms", "1.2 ms"], ...};
// then all are, of as many slices.
//
// Times of a run: a Chrome trace as `show --trace_out` and the studies write it. A stage's time is
// the median of its passes of a kind and token slice; of a measured trace, of their processor time,
// as where devices share cores. A run of whole backwards gives those (whole_backward). A hop is the
// shortest way of a message.
//
// Errors: InvalidArgument, one line that names file, field and what would be right.
#ifndef PIPELAB_PIPELINES_SYNTHESIS_STAGE_TIMES_H_
#define PIPELAB_PIPELINES_SYNTHESIS_STAGE_TIMES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/units.h"

namespace pipelab {

struct StageTimes {
  int slices = 1;                                                     // of a micro-batch
  std::vector<Nanoseconds> forward, backward_input, backward_weight;  // [stage * slices + slice]
  Nanoseconds hop;
  // Bytes that a forward keeps, and of these what stays from I to W, [stage * slices + slice]; of
  // weights and the like, [stage]. Empty: the file does not say.
  std::vector<Bytes> kept, kept_for_weight, state;
  bool whole_backward = false;  // backward_input is all of it
  bool measured = false;        // of a run

  int stages() const { return static_cast<int>(forward.size()) / slices; }
};

absl::StatusOr<StageTimes> ParseStageTimes(absl::string_view text, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SYNTHESIS_STAGE_TIMES_H_
