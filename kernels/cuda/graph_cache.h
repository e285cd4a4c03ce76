// Lists of work that come again, as graphs: one launch for all their pieces.
//
//   GraphCache cache({});
//   absl::Status status = cache.Issue(list, &device);   // in order, by a graph where one serves
//
// A list is launched piece by piece the first time that its skeleton comes (libraries load their
// kernels then, which a capture may not), captured the second time, and replayed from then on:
// as it is where its bytes are those that were captured, else with the pieces that differ changed
// in the graph. So a step of training, whose addresses repeat and whose random numbers and rates do
// not, is replayed from its third time on. Products and convolutions are the library's and cannot
// be changed: with other addresses theirs is another skeleton.
//
// What cannot be captured or changed is launched piece by piece: right, and counted.
// Thread-compatible.
#ifndef PIPELAB_KERNELS_CUDA_GRAPH_CACHE_H_
#define PIPELAB_KERNELS_CUDA_GRAPH_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "kernels/cuda/work_list.h"

namespace pipelab {
namespace gpu {

// A list made ready to be done in one launch.
class Graph {
 public:
  virtual ~Graph() = default;
  // Gives piece i other arguments, for later launches. False: it cannot, and the graph is of no
  // more use.
  virtual bool Change(int i, const Work& work) = 0;
  virtual absl::Status Launch() = 0;
};

// Who does the work.
class Worker {
 public:
  virtual ~Worker() = default;
  virtual absl::Status Do(const Work& work) = 0;
  // Without doing any of it. Null: it cannot.
  virtual std::unique_ptr<Graph> MakeGraph(const WorkList& list) = 0;
};

// Lists, and their pieces of work.
struct GraphCounts {
  int64_t replayed = 0;  // by a graph as it was
  int64_t changed = 0;   // by a graph, some pieces of which got other arguments
  int64_t captured = 0;  // made into a graph, which was launched
  int64_t plain = 0;     // piece by piece: too short, or new
  int64_t refused = 0;   // of these, those that a graph could not serve
  int64_t pieces = 0;
  int64_t pieces_in_graphs = 0;

  bool operator==(const GraphCounts& o) const;
};
GraphCounts operator-(const GraphCounts& a, const GraphCounts& b);

struct GraphLimits {
  int fewest_pieces = 4;  // fewer are launched as they are
  // The pieces of all graphs together: a piece takes some KiB of a GPU's memory.
  int64_t most_pieces = 1 << 16;
  // A graph that was not used while so many lists came makes room for another; where all are in
  // use, new lists go without. So a step with more lists than fit keeps the graphs that it has.
  int64_t idle_lists = 1 << 13;
};

class GraphCache {
 public:
  explicit GraphCache(const GraphLimits& limits) : limits_(limits) {}

  // The first fault; what comes behind it in the list may or may not have been done.
  absl::Status Issue(const WorkList& list, Worker* worker);

  const GraphCounts& counts() const { return counts_; }
  int64_t pieces_kept() const { return pieces_kept_; }
  void Clear();

 private:
  struct Entry {
    WorkList list;  // as the graph is now
    std::unique_ptr<Graph> graph;
    int64_t last_use = 0;
  };
  using Entries = absl::flat_hash_map<std::string, Entry>;

  static absl::Status DoPieces(const WorkList& list, Worker* worker);
  absl::Status Refuse(const WorkList& list, Worker* worker);
  // Its graph does this list from now on; false where that cannot be.
  bool Fit(const WorkList& list, Entry* entry);
  bool MakeRoom(int pieces);
  void Remove(Entries::iterator entry);

  const GraphLimits limits_;
  Entries entries_;  // by skeleton
  // Hashes of skeletons; two with the same one are only captured too early or not at all.
  absl::flat_hash_set<uint64_t> seen_, refused_;
  int64_t lists_ = 0, pieces_kept_ = 0;
  GraphCounts counts_;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_GRAPH_CACHE_H_
