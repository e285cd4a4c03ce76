// Random damage to texts, for fuzzing without coverage: any two texts and a source of randomness
// make a third.
//
//   const CounterRng rng(seed, "fuzz");
//   uint64_t n = 0;
//   std::string text = MutateText(seeds[0], seeds[1], rng, &n);
#ifndef PIPELAB_TESTS_FUZZ_MUTATIONS_H_
#define PIPELAB_TESTS_FUZZ_MUTATIONS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/base/rng.h"

namespace pipelab {

// `text` after one to four of: a bit flipped, a character written over, a piece dropped or doubled,
// two words swapped, a word replaced by one of `other`, a number replaced by one at the edge of a
// type, the end cut off and replaced by an end of `other`. Advances *n.
std::string MutateText(absl::string_view text, absl::string_view other, const CounterRng& rng,
                       uint64_t* n);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_FUZZ_MUTATIONS_H_
