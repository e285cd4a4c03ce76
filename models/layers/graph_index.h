// A batch's blocks, rows and labels as tensors: views of its buffer (models/data/graph_batch.h),
// wherever it lies; and a single block's index in tensors of its own.
//
//   const GraphTensors batch = ViewBatch(words);
//   ctx.graph = batch.blocks;
//   layer->Forward(ctx, {batch.rows_SW}, &stash);
#ifndef PIPELAB_MODELS_LAYERS_GRAPH_INDEX_H_
#define PIPELAB_MODELS_LAYERS_GRAPH_INDEX_H_

#include <vector>

#include "kernels/backend.h"
#include "kernels/tensor/tensor.h"
#include "models/data/graph_batch.h"
#include "models/data/neighbour_sampler.h"

namespace pipelab {

struct GraphTensors {
  std::vector<GraphIndex> blocks;
  Tensor rows_SW;   // float32
  Tensor labels_T;  // int32
};

// `words` is a whole tensor, not a view of one. The views pay nothing: it must outlive them. Of a
// device's memory the counts are read, which waits for what is queued there.
GraphTensors ViewBatch(const Tensor& words);

// The index of a block by itself, copied to the backend's device.
GraphIndex MakeGraphIndex(const GraphBlock& block, Backend* backend);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_LAYERS_GRAPH_INDEX_H_
