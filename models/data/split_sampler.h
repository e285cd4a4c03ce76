// A batch's sample, divided over members that own vertices: split parallelism (Polisetty et al.,
// "GSplit", arXiv 2303.13775; Balin et al., "Cooperative minibatching", arXiv 2310.12403).
//
//   SplitMember member(&graph, &owners, /*member=*/1, /*members=*/4, {15, 10, 5}, /*seed=*/1);
//   member.Begin(step, batch);
//   while (!member.done()) {
//     const auto& ids = member.Draw();                 // ids[m] goes to member m
//     PIPELAB_RETURN_IF_ERROR(member.Receive(came));   // came[m] is what member m has sent
//   }
//   const SplitSample sample = member.Take();
//
// At each hop a member draws neighbours of the vertices that it owns, and sends those that it needs
// to their owners, which are the next hop's targets there, each once. Draws are keyed by vertex
// (neighbour_sampler.h), so all members' blocks together are the sample of one device, edge for
// edge, and a vertex has its neighbours in the same order.
//
// What went where is kept: rows of a layer go the same ways, the other way round.
#ifndef PIPELAB_MODELS_DATA_SPLIT_SAMPLER_H_
#define PIPELAB_MODELS_DATA_SPLIT_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "models/data/graph_store.h"
#include "models/data/neighbour_sampler.h"

namespace pipelab {

using VertexOwners = std::vector<uint8_t>;  // [vertex] the member that has it

// How rows of a member's own vertices become those of its block's sources. Own rows are the
// outputs of the block before, or of the first block the input rows of `SplitSample::inputs`. A
// block's sources are first those that the member owns, which are its first own rows too, then
// those of member 0, of member 1, ...
struct RowShuffle {
  int64_t own = 0;                // sources that the member owns
  std::vector<int32_t> sent;      // own rows that go to others, those for member 0 first
  std::vector<int64_t> to, from;  // [member] rows for it and from it; 0 of itself

  int64_t sent_rows() const { return static_cast<int64_t>(sent.size()); }
  int64_t came_rows() const;
};

struct SplitBlock {
  GraphBlock block;  // of the targets that the member owns
  RowShuffle shuffle;
};

struct SplitSample {
  std::vector<SplitBlock> blocks;  // the first one is computed first
  std::vector<int32_t> inputs;     // own vertices whose rows are loaded
  std::vector<int64_t> asked;      // [hop] ids of vertices that went to others
};

class SplitMember {
 public:
  // `graph` and `owners`, one for each vertex, outlive it.
  SplitMember(const CsrGraph* graph, const VertexOwners* owners, int member, int members,
              std::vector<int> fanouts, uint64_t seed);

  // The batch's vertices, all different (CHECKed), of which it takes its own.
  void Begin(int64_t step, absl::Span<const int32_t> batch);
  bool done() const { return hop_ == static_cast<int>(fanouts_.size()); }
  // What this hop needs, by owner. Its own part is empty.
  const std::vector<std::vector<int32_t>>& Draw();
  // InvalidArgument for a vertex that this member does not own.
  absl::Status Receive(const std::vector<std::vector<int32_t>>& came);
  SplitSample Take();

 private:
  struct Place {
    uint32_t stamp = 0;
    int32_t place = 0;
  };
  // The vertex's place, and whether it is new, in which case that is `next`.
  bool IsNew(int32_t v, int32_t next, int32_t* place);
  void NewStamp();
  void SortByOwner(SplitBlock* split);

  const CsrGraph* const graph_;
  const VertexOwners* const owners_;
  const int member_, members_;
  const std::vector<int> fanouts_;
  const uint64_t seed_;

  int64_t step_ = 0;
  int hop_ = 0;
  std::vector<int32_t> frontier_;             // own vertices, the next block's targets
  std::vector<std::vector<int32_t>> needed_;  // of others
  SplitSample sample_;
  std::vector<Place> places_;  // [vertex]
  uint32_t stamp_ = 0;
};

// All members' in turn, in one thread, by member: `members` are of one group, in order.
std::vector<SplitSample> SampleOfAll(int64_t step, absl::Span<const int32_t> batch,
                                     std::vector<SplitMember>* members);
// Members 0 to `members` - 1 of a group.
std::vector<SplitMember> MakeSplitMembers(const CsrGraph* graph, const VertexOwners* owners,
                                          int members, const std::vector<int>& fanouts,
                                          uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_SPLIT_SAMPLER_H_
