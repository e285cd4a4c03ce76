#include "models/data/graph_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/data/example_order.h"

namespace pipelab {
namespace {

int64_t RoundUp(int64_t words) { return (words + 15) / 16 * 16; }  // cache lines

// Counts -> places, in the order of BatchLayout.
BatchLayout LayOut(std::vector<BatchLayout::Block> blocks, int32_t rows, int width) {
  BatchLayout layout;
  layout.num_rows = rows;
  int64_t at = kBatchHeader;
  const auto take = [&](int64_t words) {
    const int64_t begin = at;
    at += words;
    return begin;
  };
  for (BatchLayout::Block& b : blocks) {
    b.offsets_T1 = take(b.targets + 1);
    b.sources_E = take(b.edges);
    b.targets_E = take(b.edges);
    b.back_offsets_S1 = take(b.sources + 1);
    b.back_edges_E = take(b.edges);
    b.vertices_T = take(b.targets);
  }
  layout.vertices_S = take(rows);
  layout.labels_T = take(blocks.back().targets);
  layout.index_words = at;
  layout.rows = RoundUp(at);
  layout.words = layout.rows + int64_t{rows} * width;
  layout.blocks = std::move(blocks);
  return layout;
}

void WriteBlock(const GraphBlock& block, const BatchLayout::Block& at, int32_t* words) {
  std::copy(block.offsets.begin(), block.offsets.end(), words + at.offsets_T1);
  std::copy(block.edges.begin(), block.edges.end(), words + at.sources_E);
  std::copy_n(block.sources.begin(), block.num_targets, words + at.vertices_T);
  WriteBackEdges(block, words + at.targets_E, words + at.back_offsets_S1, words + at.back_edges_E);
}

}  // namespace

void AddSelfEdges(GraphSample* sample) {
  for (GraphBlock& block : sample->blocks) {
    std::vector<int32_t> edges;
    edges.reserve(block.edges.size() + block.num_targets);
    for (int32_t t = 0; t < block.num_targets; ++t) {
      const auto begin = block.edges.begin();
      edges.insert(edges.end(), begin + block.offsets[t], begin + block.offsets[t + 1]);
      edges.push_back(t);
    }
    for (int32_t t = 0; t <= block.num_targets; ++t) block.offsets[t] += t;
    block.edges = std::move(edges);
  }
}

void WriteBackEdges(const GraphBlock& block, int32_t* targets_E, int32_t* back_offsets_S1,
                    int32_t* back_edges_E) {
  for (int32_t t = 0; t < block.num_targets; ++t) {
    std::fill(targets_E + block.offsets[t], targets_E + block.offsets[t + 1], t);
  }
  // By source: counts, then places.
  std::fill_n(back_offsets_S1, block.num_sources() + 1, 0);
  for (int32_t s : block.edges) ++back_offsets_S1[s + 1];
  for (int32_t s = 0; s < block.num_sources(); ++s) back_offsets_S1[s + 1] += back_offsets_S1[s];
  std::vector<int32_t> next(back_offsets_S1, back_offsets_S1 + block.num_sources());
  for (int32_t e = 0; e < block.num_edges(); ++e) back_edges_E[next[block.edges[e]]++] = e;
}

int64_t BatchLayout::num_edges() const {
  int64_t sum = 0;
  for (const Block& b : blocks) sum += b.edges;
  return sum;
}

BatchLayout ReadLayout(absl::Span<const int32_t> header) {
  CHECK_GE(static_cast<int64_t>(header.size()), kBatchHeader);
  std::vector<BatchLayout::Block> blocks(header[0]);
  CHECK(!blocks.empty() && blocks.size() <= kMostBlocks) << "no header of a batch";
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int32_t* const at = &header[4 + 4 * b];
    blocks[b].sources = at[0];
    blocks[b].targets = at[1];
    blocks[b].edges = at[2];
  }
  return LayOut(std::move(blocks), header[2], header[1]);
}

GraphBatches::GraphBatches(const GraphData* data, const GraphBatchOptions& options)
    : data_(data), options_(options) {
  const auto train = static_cast<int64_t>(data->train.size());
  CHECK(options.batch > 0 && options.members > 0 && options.batch % options.members == 0)
      << options.members << " members of a batch of " << options.batch;
  CHECK_LE(options.fanouts.size(), kMostBlocks);
  steps_of_epoch_ = train / options.batch;
  CHECK_GE(steps_of_epoch_, 1) << train << " training vertices, batches of " << options.batch;
  // Each hop adds its edges' ends, and no more than there are vertices.
  const int64_t vertices = data->graph.num_vertices();
  const auto all_edges = static_cast<int64_t>(data->graph.neighbours_E.size());
  std::vector<BatchLayout::Block> most;
  int64_t known = options.batch / options.members;
  for (int fanout : options.fanouts) {
    BatchLayout::Block b;
    const int64_t edges = std::min(known * std::min<int64_t>(fanout, vertices), all_edges);
    b.targets = static_cast<int32_t>(known);
    known = std::min(known + edges, vertices);
    b.sources = static_cast<int32_t>(known);
    b.edges = static_cast<int32_t>(edges + (options.self_edges ? b.targets : 0));
    most.insert(most.begin(), b);
  }
  const int32_t most_rows = most.front().sources;
  const BatchLayout layout = LayOut(std::move(most), most_rows, data->width);
  index_words_ = layout.index_words;
  batch_words_ = layout.words;
}

std::vector<int32_t> GraphBatches::Targets(int64_t step, int member) const {
  const int64_t epoch = step / steps_of_epoch_, own = options_.batch / options_.members;
  const Shuffle shuffle(data_->train.size(), options_.seed, absl::StrCat("graph/", epoch));
  const int64_t first = step % steps_of_epoch_ * options_.batch + member * own;
  std::vector<int32_t> targets(own);
  for (int64_t i = 0; i < own; ++i) targets[i] = data_->train[shuffle.At(first + i)];
  return targets;
}

void GraphBatches::Index(GraphSample sample, absl::Span<int32_t> words,
                         const std::vector<int32_t>* inputs) const {
  if (options_.self_edges) AddSelfEdges(&sample);
  std::vector<BatchLayout::Block> counts(sample.blocks.size());
  std::fill_n(words.begin(), kBatchHeader, 0);
  words[0] = static_cast<int32_t>(counts.size());
  words[1] = data_->width;
  const std::vector<int32_t>& vertices =
      inputs == nullptr ? sample.blocks.front().sources : *inputs;
  words[2] = static_cast<int32_t>(vertices.size());
  for (size_t b = 0; b < counts.size(); ++b) {
    const GraphBlock& block = sample.blocks[b];
    counts[b].sources = words[4 + 4 * b] = block.num_sources();
    counts[b].targets = words[5 + 4 * b] = block.num_targets;
    counts[b].edges = words[6 + 4 * b] = block.num_edges();
  }
  const BatchLayout layout = LayOut(std::move(counts), words[2], data_->width);
  CHECK_LE(layout.index_words, static_cast<int64_t>(words.size())) << "room for an index";
  for (size_t b = 0; b < sample.blocks.size(); ++b) {
    WriteBlock(sample.blocks[b], layout.blocks[b], words.data());
  }
  std::copy(vertices.begin(), vertices.end(), words.begin() + layout.vertices_S);
  for (int32_t t = 0; t < layout.num_targets(); ++t) {
    words[layout.labels_T + t] = data_->labels_V[sample.blocks.back().sources[t]];
  }
}

void GraphBatches::GatherRows(absl::Span<int32_t> words) const {
  const BatchLayout layout = ReadLayout(words);
  CHECK_LE(layout.words, static_cast<int64_t>(words.size())) << "room for a batch";
  const int64_t width = data_->width;
  const int32_t* const vertices = &words[layout.vertices_S];
  constexpr int64_t kAhead = 8;  // rows come from anywhere
  for (int64_t i = 0; i < layout.num_rows; ++i) {
    if (i + kAhead < layout.num_rows) {
      const float* const next = &data_->rows_VW[vertices[i + kAhead] * width];
      for (int64_t k = 0; k < width; k += 16) __builtin_prefetch(next + k);
    }
    std::memcpy(&words[layout.rows + i * width], &data_->rows_VW[vertices[i] * width], width * 4);
  }
}

}  // namespace pipelab
