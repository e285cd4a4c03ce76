// The known name that a mistyped one is nearest to, for the end of an error message.
//
//   DidYouMean("zb-h1", {"zb_h1", "zbv"});              // "; did you mean zb_h1?"
//   DidYouMean("moon", {"dgx-a100"});                   // "": nothing is near
//   DidYouMean("micro-batches", names, "--");           // "; did you mean --micro_batches?"
//
// Near is the same but for case, '-' and '_'; or up to a third of its characters replaced, left
// out, put in or swapped with the next; or the beginning of a longer name.
#ifndef PIPELAB_TOOLS_BASE_DID_YOU_MEAN_H_
#define PIPELAB_TOOLS_BASE_DID_YOU_MEAN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipelab {

// `prefix` stands before the name in the answer. The first of equally near names.
std::string DidYouMean(absl::string_view wanted, const std::vector<absl::string_view>& known,
                       absl::string_view prefix = "");

// The same; where nothing is near, all names: "; there are gpipe, 1f1b".
std::string NearestOrAll(absl::string_view wanted, const std::vector<absl::string_view>& known);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_DID_YOU_MEAN_H_
