// The downsets of a DAG: sets of nodes that have, with a node, everything that it needs. What comes
// before a cut of a pipeline is one, and a stage is the difference of two that are nested.
//
//   auto lattice = Downsets::Make(needs, /*limit=*/40000);       // needs[v]: nodes
//   if (!lattice.has_value()) ...                                // more than the limit
//   for (int u = 1; u < lattice->size(); ++u) sum[u] = sum[lattice->parent(u)] +
//                                                     cost[lattice->added(u)];
//   if (lattice->Includes(u, smaller)) ...                       // nested: a few instructions
//
// Nodes are put on chains (each node needs the one below it), and a downset is how far it reaches
// on each: seven bits a chain, eight chains a word. So inclusion is a subtraction a word, and a
// node can be added where the set includes what the node needs. Sets are numbered by size: 0 is
// empty, the last has all nodes.
#ifndef PIPELAB_PIPELINES_PLANNERS_DOWNSETS_H_
#define PIPELAB_PIPELINES_PLANNERS_DOWNSETS_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"

namespace pipelab {

class Downsets {
 public:
  // The graph has no cycle. No value: there are more sets than the limit.
  static absl::optional<Downsets> Make(const std::vector<std::vector<int>>& needs, int limit);

  int size() const { return static_cast<int>(parents_.size()); }
  int num_nodes() const { return static_cast<int>(place_.size()); }
  // A set with one node fewer, and the node.
  int parent(int set) const { return parents_[set]; }
  int added(int set) const { return added_[set]; }

  bool Includes(int set, int smaller) const {
    const uint64_t *a = key(set), *b = key(smaller);
    for (int w = 0; w < words_; ++w) {
      if ((((a[w] | kHigh) - b[w]) & kHigh) != kHigh) return false;
    }
    return true;
  }
  bool Has(int set, int node) const {
    const Place& p = place_[node];
    return ((key(set)[p.word] >> p.shift) & 127) > p.position;
  }
  // For loops over many sets: `words` words each, one after the other.
  const uint64_t* key(int set) const { return keys_.data() + static_cast<size_t>(set) * words_; }
  int words() const { return words_; }
  static constexpr uint64_t kHigh = 0x8080808080808080u;

  std::vector<int> Nodes(int set, int without) const;  // of the difference, ascending

 private:
  struct Place {
    int word = 0, shift = 0;
    uint64_t position = 0;  // on its chain
  };
  class Builder;

  int words_ = 1;
  std::vector<Place> place_;    // [node]
  std::vector<uint64_t> keys_;  // [set][word]
  std::vector<int> parents_, added_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_DOWNSETS_H_
