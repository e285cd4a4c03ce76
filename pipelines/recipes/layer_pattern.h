// Which layers of a model have something, as Megatron-LM's options say it: every N-th, or a list.
// Private to recipes.
//
//   ParseLayerPattern("([0]*3+[1]*58)", /*layers=*/61)    // three false, then true
//   FormatLayerPattern(layers)                            // "([0]*3+[1]*58)"
#ifndef PIPELAB_PIPELINES_RECIPES_LAYER_PATTERN_H_
#define PIPELAB_PIPELINES_RECIPES_LAYER_PATTERN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// A list expression of Python of lists of 0 and 1, "+", "*", whole numbers and parentheses, whose
// value has one number per layer. InvalidArgument says what is wrong with it.
absl::StatusOr<std::vector<bool>> ParseLayerPattern(absl::string_view text, int64_t layers);

std::string FormatLayerPattern(const std::vector<bool>& layers);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_LAYER_PATTERN_H_
