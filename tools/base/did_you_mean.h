// The known names that a wrong one is nearest to, for the end of an error message, and those that a
// name means by its words.
//
//   DidYouMean("zb-h1", {"zb_h1", "zbv"});              // "; did you mean zb_h1?"
//   DidYouMean("moon", {"dgx-a100"});                   // "": nothing is near
//   DidYouMean("micro-batches", names, "--");           // "; did you mean --micro_batches?"
//   DidYouMean("qwen3-235b", {"qwen2.5-7b", "qwen3-235b-a22b"});   // the second: by its words
//   MeantByWords("Llama3-70B", {"llama-2-70b", "llama-3-70b"});    // {"llama-3-70b"}
//
// Nearest is what is the same but for case, '-', '_' and one slip that is in no number; then what
// shares most words, at least 0.6 of both names', or all of the wanted one's; then what has up to a
// third of its characters replaced, left out, put in or swapped with the next, or begins so.
#ifndef PIPELAB_TOOLS_BASE_DID_YOU_MEAN_H_
#define PIPELAB_TOOLS_BASE_DID_YOU_MEAN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipelab {

// In lower case: letters, and numbers with the letters behind them. "Llama3.1-70B" has "llama",
// "3.1" and "70b".
std::vector<std::string> NameWords(absl::string_view name);

// The names that have the same words; where none has, those whose words begin so.
std::vector<absl::string_view> MeantByWords(absl::string_view wanted,
                                            const std::vector<absl::string_view>& known);

// `prefix` stands before each name in the answer: up to five that are equally near by their words.
std::string DidYouMean(absl::string_view wanted, const std::vector<absl::string_view>& known,
                       absl::string_view prefix = "");

// The same; where nothing is near, all names: "; there are gpipe, 1f1b".
std::string NearestOrAll(absl::string_view wanted, const std::vector<absl::string_view>& known);

// Callers that list all wrong names of a file ask for the nearest of the first ones alone: each
// takes a look at all names that are known.
inline constexpr size_t kMostAskedFor = 32;

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_DID_YOU_MEAN_H_
