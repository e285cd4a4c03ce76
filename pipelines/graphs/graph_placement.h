// Where rows of a graph's vertices lie, and which member of a group computes what of a batch: four
// systems, counted by the same code.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto counter, GraphCounter::Make(set_up, inputs_V, owners));
//   const GraphStep step = counter->Count(/*step=*/0, batch);
//   step.members[2].host_rows;                     // of 4 x set_up.width / columns bytes
//
// kData     data-parallel copies (DGL): each member samples its part of the batch, and loads all
//           of its rows from host memory.
// kCache    the same with a cache divided over a host's members (Quiver, DistCache): rows come
//           from the own cache, a peer's, or the host.
// kPushPull P3 (Gandhi and Iyer, OSDI 2021): each member has a share of the columns of all rows and
//           computes the first layer's partial products of all members' blocks by it, which are
//           summed at the members whose blocks they are; from there on data-parallel.
// kSplit    split parallelism (GSplit, arXiv 2303.13775): models/data/split_sampler.h. An owner
//           caches its own vertices alone.
//
// Where there are several hosts, each has all rows and an equal part of the batch, which its
// members divide. Caches have the rows that are inputs most often in pre-samples. Bytes are those
// of float32.
#ifndef PIPELAB_PIPELINES_GRAPHS_GRAPH_PLACEMENT_H_
#define PIPELAB_PIPELINES_GRAPHS_GRAPH_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "models/data/graph_store.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "models/specs/graph_conv_spec.h"

namespace pipelab {

enum class GraphSystem : uint8_t { kData, kCache, kPushPull, kSplit };
inline constexpr GraphSystem kGraphSystems[] = {GraphSystem::kData, GraphSystem::kCache,
                                                GraphSystem::kPushPull, GraphSystem::kSplit};
const char* GraphSystemName(GraphSystem system);  // "push-pull"

struct GraphSetUp {
  const CsrGraph* graph = nullptr;  // outlives the counter
  GraphSystem system = GraphSystem::kData;
  int hosts = 1, members = 4;  // of a host
  std::vector<int> fanouts = {15, 15, 15};
  uint64_t seed = 1;
  int64_t width = 0, hidden = 256, classes = 0;
  // Heads of GAT, whose last layer has one; 0: GraphSAGE. The first layer of GAT pushes products of
  // sources and not of targets.
  int64_t heads = 0;
  int64_t cache_bytes = 0;  // of a member, for rows
  // kCache: where a host's caches have room for more than all rows, each has the hottest too.
  bool repeat_hottest = false;

  int all() const { return hosts * members; }
  int64_t layers() const { return static_cast<int64_t>(fanouts.size()); }
  int64_t heads_of(int64_t layer) const { return layer + 1 == layers() ? heads > 0 : heads; }
  int64_t inputs_of(int64_t layer) const { return layer == 0 ? width : hidden; }
  int64_t outputs_of(int64_t layer) const { return layer + 1 == layers() ? classes : hidden; }
};

BlockCounts CountsOf(const GraphBlock& block);
inline void Add(const BlockCounts& more, BlockCounts* sum) {
  sum->targets += more.targets;
  sum->sources += more.sources;
  sum->edges += more.edges;
}

// Bytes from each member to each other one: [from * n + to].
using ByteMatrix = std::vector<int64_t>;

struct GraphWork {
  std::vector<BlockCounts> drawn;  // [hop] what it samples
  int64_t host_rows = 0, peer_rows = 0, own_rows = 0;
  std::vector<std::vector<BlockCounts>> layers;  // [layer] the blocks that it computes
};

struct GraphStep {
  int64_t row_bytes = 0;  // of a loaded row
  int first_columns = 1;  // the first layer has one of so many shares of its inputs' columns
  std::vector<GraphWork> members;
  std::vector<ByteMatrix> sampling;           // exchanges, one after the other
  ByteMatrix loading;                         // rows of peers' caches
  std::vector<ByteMatrix> forward, backward;  // [layer]; empty: none

  int64_t rows() const;             // loaded, by all members
  int64_t edges() const;            // computed, a share of columns as that share
  double largest_edges() const;     // of the member with most, over the mean
  int64_t exchanged_bytes() const;  // of forward and backward
};

// Adds up the counts of several batches of one system and group, as if they were one batch. A graph
// and a batch that are scaled down by n have the same share of their draws in common, so n such
// batches count as one of the whole graph.
void Add(const GraphStep& more, GraphStep* sum);

class GraphCounter {
 public:
  // `inputs_V`: how often each vertex is an input, for caches. `owners` of a host's members, for
  // kSplit alone. InvalidArgument for sizes that do not fit.
  static absl::StatusOr<std::unique_ptr<GraphCounter>> Make(const GraphSetUp& set_up,
                                                            const std::vector<int64_t>& inputs_V,
                                                            VertexOwners owners);

  // The batch's vertices are different. It has at least one for each member that deals them.
  GraphStep Count(int64_t step, absl::Span<const int32_t> batch);

 private:
  explicit GraphCounter(const GraphSetUp& set_up);
  void FillCaches(const std::vector<int64_t>& inputs_V);
  void CountOwnBlocks(int64_t step, absl::Span<const int32_t> batch, int first, GraphStep* counts);
  void CountSplit(int64_t step, absl::Span<const int32_t> batch, int first, GraphStep* counts);
  void PushColumns(int first, GraphStep* counts);
  void LoadRow(int32_t v, int first, int member, GraphStep* counts);

  const GraphSetUp set_up_;
  VertexOwners owners_, cached_at_;  // [vertex] a member's number, cached_at_ also kNowhere
  NeighbourSampler sampler_;
  std::vector<SplitMember> split_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_GRAPHS_GRAPH_PLACEMENT_H_
