// The token slices of a model's samples, for who costs or runs them.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<TokenSlice> slices, SlicesOfModel(graph, {4096, 4096}));
#ifndef PIPELAB_MODELS_GRAPH_MODEL_SLICES_H_
#define PIPELAB_MODELS_GRAPH_MODEL_SLICES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

// Slices of these lengths (MakeTokenSlices), of a whole model or one device's. Where rows are split
// by tokens, each of so many devices has its part of each slice's. InvalidArgument for lengths that
// are not the samples' or that the devices do not divide, and for a layer that takes whole samples.
absl::StatusOr<std::vector<TokenSlice>> SlicesOfModel(const ModelGraph& graph,
                                                      absl::Span<const int64_t> lengths,
                                                      int64_t row_parts = 1);

// Slices as equal as can be, in whole multiples of `row_parts`: the first ones take the remainder.
// InvalidArgument for more than there are.
absl::StatusOr<std::vector<int64_t>> EqualSlicesOfModel(const ModelGraph& graph, int64_t slices,
                                                        int64_t row_parts = 1);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_MODEL_SLICES_H_
