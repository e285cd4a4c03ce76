// For each of some operators one of its variants, so that all fit in memory in the least
// time.
//
//   std::vector<int> chosen = SelectVariants({{{3, 8}, {4, 1}}, {{2, 5}}}, 9);   // {1, 0}
//
// Exact, by the undominated pairs of time and bytes. Operators with the same variants are one
// group, of which only the number with each variant matters, so that a hundred equal layers
// are quick. Of more than 2^14 undominated pairs some are left out, and the answer may not be the
// best.
#ifndef PIPELAB_PIPELINES_PLANNERS_SELECT_VARIANTS_H_
#define PIPELAB_PIPELINES_PLANNERS_SELECT_VARIANTS_H_

#include <vector>

namespace pipelab {

struct VariantCost {
  double time = 0, bytes = 0;
};

// [operator] place in its variants; empty where they do not fit, whatever is chosen. Each has a
// variant.
std::vector<int> SelectVariants(const std::vector<std::vector<VariantCost>>& variants,
                                double most_bytes);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_SELECT_VARIANTS_H_
