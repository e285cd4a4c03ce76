// A mini-batch of a graph network as one buffer of 4-byte words, as preparation hands it from stage
// to stage: counts, the blocks' edges by target and by source, labels, and rows.
//
//   const GraphBatches batches(&data, {.batch = 1024, .fanouts = {15, 10, 5}});
//   std::vector<int32_t> words(batches.batch_words());
//   batches.Index(sampler.Sample(step, batches.Targets(step, 0)), absl::MakeSpan(words));
//   batches.GatherRows(absl::MakeSpan(words));
//   const BatchLayout layout = ReadLayout(words);                  // where all of it lies
//
// Buffers have room for the largest batch that there can be, since messages of a stage have one
// size; what a batch does not need is not touched.
#ifndef PIPELAB_MODELS_DATA_GRAPH_BATCH_H_
#define PIPELAB_MODELS_DATA_GRAPH_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "models/data/graph_store.h"
#include "models/data/neighbour_sampler.h"

namespace pipelab {

// Places of words.
struct BatchLayout {
  struct Block {
    int32_t sources = 0, targets = 0, edges = 0;
    int64_t offsets_T1 = 0, sources_E = 0, targets_E = 0, back_offsets_S1 = 0, back_edges_E = 0;
    int64_t vertices_T = 0;
  };
  std::vector<Block> blocks;
  int64_t vertices_S = 0;  // whose rows are there: the first block's sources
  int64_t labels_T = 0;    // of the batch's targets
  int64_t index_words = 0;
  int32_t num_rows = 0;
  int64_t rows = 0;   // where they begin
  int64_t words = 0;  // all

  int32_t num_targets() const { return blocks.back().targets; }
  int64_t num_edges() const;
};
inline constexpr int64_t kBatchHeader = 64;  // the first words, of which ReadLayout reads no more
inline constexpr size_t kMostBlocks = 15;

BatchLayout ReadLayout(absl::Span<const int32_t> header);

// Each target becomes a neighbour of its own, behind the others (for GAT).
void AddSelfEdges(GraphSample* sample);

// Writes the targets of a block's edges, and their places by source, each source's in order.
void WriteBackEdges(const GraphBlock& block, int32_t* targets_E, int32_t* back_offsets_S1,
                    int32_t* back_edges_E);

struct GraphBatchOptions {
  int64_t batch = 1024;  // targets of a step, of all members together
  std::vector<int> fanouts = {15, 10, 5};
  uint64_t seed = 1;
  int members = 1;          // data-parallel copies, which divide a step's targets
  bool self_edges = false;  // AddSelfEdges
};

class GraphBatches {
 public:
  // `data` must outlive this. The members divide the batch, and the training vertices are at least
  // one batch: CHECKed.
  GraphBatches(const GraphData* data, const GraphBatchOptions& options);

  // Training vertices are shuffled anew in each epoch, by the seed; what does not fill a batch is
  // left out.
  int64_t steps_of_epoch() const { return steps_of_epoch_; }
  std::vector<int32_t> Targets(int64_t step, int member) const;

  // The most words of an index, and of a whole batch.
  int64_t index_words() const { return index_words_; }
  int64_t batch_words() const { return batch_words_; }

  // Writes the index, with labels. `sample` may get self edges. `inputs`: the vertices whose rows
  // come with it, where they are not the first block's sources (split_sampler.h).
  void Index(GraphSample sample, absl::Span<int32_t> words,
             const std::vector<int32_t>* inputs = nullptr) const;
  // Behind an index: the rows of its vertices.
  void GatherRows(absl::Span<int32_t> words) const;

  const GraphData& data() const { return *data_; }
  const GraphBatchOptions& options() const { return options_; }

 private:
  const GraphData* const data_;
  const GraphBatchOptions options_;
  int64_t steps_of_epoch_ = 0, index_words_ = 0, batch_words_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_GRAPH_BATCH_H_
