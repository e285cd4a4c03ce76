// Batch normalisation where several devices have the rows of one micro-batch: data-parallel copies
// of a stage. Either all of them normalise by the statistics of all rows, and train as one device
// with the whole micro-batch does; or each by those of its own, which is another computation.
//
//   AddExchange(/*copies=*/4, &layer);            // its memory
//   StatisticsExchange(layer, /*copies=*/4);      // what it sends in each pass
//
// Synchronised (as PyTorch's SyncBatchNorm): forward, everybody gets everybody's means and
// variances [2 C] and puts them together, in the order of devices; backward, the two sums over rows
// that the input's gradient needs are summed over the devices. Bytes are float32's on every
// backend.
#ifndef PIPELAB_MODELS_GRAPH_BATCH_NORM_COPIES_H_
#define PIPELAB_MODELS_GRAPH_BATCH_NORM_COPIES_H_

#include <cstdint>

#include "models/graph/layer_spec.h"
#include "models/graph/tensor_parallel.h"

namespace pipelab {

enum class BatchNormCopies : uint8_t { kSynchronised, kOwn };

// Whether it normalises by statistics of its rows: it has running ones.
inline bool HasBatchNorm(const LayerSpec& layer) { return !layer.statistics.empty(); }

// The collectives of the group in each pass, all blocking. There are none for one copy or another
// layer.
TensorCollectives StatisticsExchange(const LayerSpec& layer, int64_t copies);

// Raises the layer's peaks to what its passes then hold.
void AddExchange(int64_t copies, LayerSpec* layer);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_GRAPH_BATCH_NORM_COPIES_H_
