// What a layer reads of the data set, as tensors of its device, for the time of one pass. The
// source is a pure function of (step, sample), so a backward draws the numbers again and nothing is
// kept between passes.
//
//   BatchView view = LoadData(spec, source, &arena, step, first_sample, samples);
#ifndef PIPELAB_MODELS_LAYERS_DATA_VIEW_H_
#define PIPELAB_MODELS_LAYERS_DATA_VIEW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/layer.h"

namespace pipelab {

// The fields that the layer reads, which the source has (CheckData), or a slice of their first
// dimension, or the device's tokens (LayerSpec::context); DataBytes(spec, samples, slice).
BatchView LoadData(const LayerSpec& spec, const BatchSource& source, Arena* arena, int64_t step,
                   int64_t first_sample, int64_t samples, TokenSlice slice = TokenSlice());

// The tokens of a pass with caches, where the layer looks tokens up; what else a layer reads of the
// data, such as targets, such a pass has not.
BatchView CachedData(const LayerSpec& spec, const CachedPass& pass, Arena* arena);

// Whether the source fits the layer: InvalidArgument when there is none (null), or a field is
// missing, has another type or shape, larger ids, or places without ids that the layer does not
// take. A layer that reads nothing fits any.
absl::Status CheckData(const LayerSpec& spec, const BatchSource* source);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_DATA_VIEW_H_
