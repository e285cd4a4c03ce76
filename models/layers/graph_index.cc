#include "models/layers/graph_index.h"

#include <algorithm>
#include <utility>

#include "kernels/tensor/host_values.h"

namespace pipelab {

GraphTensors ViewBatch(const Tensor& words) {
  const BatchLayout layout = ReadLayout(HostIds(words.Rows(0, kBatchHeader)));
  const auto ids = [&](int64_t begin, int64_t count) { return words.Rows(begin, begin + count); };
  GraphTensors batch;
  for (const BatchLayout::Block& b : layout.blocks) {
    GraphIndex index;
    index.num_sources = b.sources;
    index.num_targets = b.targets;
    index.num_edges = b.edges;
    index.offsets_T1 = ids(b.offsets_T1, b.targets + 1);
    index.sources_E = ids(b.sources_E, b.edges);
    index.targets_E = ids(b.targets_E, b.edges);
    index.back_offsets_S1 = ids(b.back_offsets_S1, b.sources + 1);
    index.back_edges_E = ids(b.back_edges_E, b.edges);
    index.vertices_T = ids(b.vertices_T, b.targets);
    batch.blocks.push_back(std::move(index));
  }
  batch.labels_T = ids(layout.labels_T, layout.num_targets());
  // The same memory as floats.
  const Tensor floats(DataType::kFloat32, {words.size()}, words.storage(), nullptr);
  const int64_t rows = layout.num_rows;
  batch.rows_SW = floats.Rows(layout.rows, layout.words)
                      .Reshape({rows, (layout.words - layout.rows) / std::max<int64_t>(1, rows)});
  return batch;
}

GraphIndex MakeGraphIndex(const GraphBlock& block, Backend* backend) {
  const auto place = [&](const std::vector<int32_t>& ids) {
    const Tensor to = backend->arena().Allocate(
        DataType::kInt32, {static_cast<int64_t>(ids.size())}, MemoryKind::kActivation);
    SetHostIds(to, ids);
    return to;
  };
  std::vector<int32_t> targets(block.edges.size()), back(block.sources.size() + 1);
  std::vector<int32_t> edges(block.edges.size());
  WriteBackEdges(block, targets.data(), back.data(), edges.data());
  GraphIndex index;
  index.num_sources = block.num_sources();
  index.num_targets = block.num_targets;
  index.num_edges = block.num_edges();
  index.offsets_T1 = place(block.offsets);
  index.sources_E = place(block.edges);
  index.targets_E = place(targets);
  index.back_offsets_S1 = place(back);
  index.back_edges_E = place(edges);
  index.vertices_T = place({block.sources.begin(), block.sources.begin() + block.num_targets});
  return index;
}

}  // namespace pipelab
