#include "models/data/split_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {
int64_t RowShuffle::came_rows() const {
  return std::accumulate(from.begin(), from.end(), int64_t{0});
}

SplitMember::SplitMember(const CsrGraph* graph, const VertexOwners* owners, int member, int members,
                         std::vector<int> fanouts, uint64_t seed)
    : graph_(graph),
      owners_(owners),
      member_(member),
      members_(members),
      fanouts_(std::move(fanouts)),
      seed_(seed),
      needed_(members),
      places_(graph->num_vertices()) {
  CHECK_EQ(owners->size(), places_.size());
  CHECK(member >= 0 && member < members && members <= 256);
  CHECK(!fanouts_.empty());
}

void SplitMember::NewStamp() {
  if (++stamp_ != 0) return;
  std::fill(places_.begin(), places_.end(), Place());
  stamp_ = 1;
}

bool SplitMember::IsNew(int32_t v, int32_t next, int32_t* place) {
  Place& known = places_[v];
  const bool fresh = known.stamp != stamp_;
  if (fresh) known = {stamp_, next};
  *place = known.place;
  return fresh;
}

void SplitMember::Begin(int64_t step, absl::Span<const int32_t> batch) {
  step_ = step;
  hop_ = 0;
  frontier_.clear();
  NewStamp();
  for (int32_t v : batch) {
    int32_t place;
    CHECK(v >= 0 && v < graph_->num_vertices()) << "vertex " << v;
    CHECK(IsNew(v, 0, &place)) << "vertex " << v << " twice";
    if ((*owners_)[v] == member_) frontier_.push_back(v);
  }
  sample_ = SplitSample();
  sample_.blocks.resize(fanouts_.size());
  sample_.asked.resize(fanouts_.size());
}

const std::vector<std::vector<int32_t>>& SplitMember::Draw() {
  SplitBlock& split = sample_.blocks[fanouts_.size() - 1 - hop_];
  GraphBlock& block = split.block;
  block.num_targets = static_cast<int32_t>(frontier_.size());
  block.sources = frontier_;
  block.offsets = {0};
  NewStamp();
  int32_t place;
  for (int32_t i = 0; i < block.num_targets; ++i) IsNew(frontier_[i], i, &place);
  std::vector<int32_t> drawn;
  for (int32_t v : frontier_) {
    DrawNeighbours(*graph_, seed_, step_, hop_, v, fanouts_[hop_], &drawn);
    for (int32_t u : drawn) {
      if (IsNew(u, block.num_sources(), &place)) block.sources.push_back(u);
      block.edges.push_back(place);
    }
    block.offsets.push_back(block.num_edges());
  }
  SortByOwner(&split);
  sample_.asked[hop_] = split.shuffle.came_rows();
  return needed_;
}

// Own sources first, then others' by member, each in the order in which they came. Targets are own
// ones and stay in front.
void SplitMember::SortByOwner(SplitBlock* split) {
  GraphBlock& block = split->block;
  for (std::vector<int32_t>& ids : needed_) ids.clear();
  std::vector<int32_t> own;
  for (int32_t u : block.sources) {
    const int owner = (*owners_)[u];
    (owner == member_ ? own : needed_[owner]).push_back(u);
  }
  split->shuffle.own = static_cast<int64_t>(own.size());
  // Where each owner's begin, and then the next one's place.
  std::vector<int32_t> next(members_);
  int32_t begin = static_cast<int32_t>(own.size());
  std::vector<int32_t> sorted = std::move(own);
  for (int m = 0; m < members_; ++m) {
    next[m] = m == member_ ? 0 : begin;
    begin += static_cast<int32_t>(needed_[m].size());
    split->shuffle.from.push_back(static_cast<int64_t>(needed_[m].size()));
    sorted.insert(sorted.end(), needed_[m].begin(), needed_[m].end());
  }
  std::vector<int32_t> places;
  for (int32_t u : block.sources) places.push_back(next[(*owners_)[u]]++);
  for (int32_t& e : block.edges) e = places[e];
  block.sources = std::move(sorted);
}

absl::Status SplitMember::Receive(const std::vector<std::vector<int32_t>>& came) {
  RowShuffle& shuffle = sample_.blocks[fanouts_.size() - 1 - hop_].shuffle;
  CHECK_EQ(came.size(), needed_.size());
  // Own sources come first, of which the targets so far are the first ones: a layer's targets are
  // its first sources.
  const std::vector<int32_t>& sources = sample_.blocks[fanouts_.size() - 1 - hop_].block.sources;
  frontier_.assign(sources.begin(), sources.begin() + shuffle.own);
  NewStamp();
  int32_t place;
  for (size_t i = 0; i < frontier_.size(); ++i) {
    IsNew(frontier_[i], static_cast<int32_t>(i), &place);
  }
  for (int m = 0; m < members_; ++m) {
    for (int32_t v : came[m]) {
      if (v < 0 || v >= graph_->num_vertices() || (*owners_)[v] != member_) {
        return absl::InvalidArgumentError(absl::StrCat("member ", m, " asks member ", member_,
                                                       " for vertex ", v,
                                                       ", which is not one of its own"));
      }
      if (IsNew(v, static_cast<int32_t>(frontier_.size()), &place)) frontier_.push_back(v);
      shuffle.sent.push_back(place);
    }
    shuffle.to.push_back(static_cast<int64_t>(came[m].size()));
  }
  ++hop_;
  return absl::OkStatus();
}

SplitSample SplitMember::Take() {
  CHECK(done());
  sample_.inputs = std::move(frontier_);
  frontier_.clear();
  return std::move(sample_);
}

std::vector<SplitSample> SampleOfAll(int64_t step, absl::Span<const int32_t> batch,
                                     std::vector<SplitMember>* members) {
  const size_t n = members->size();
  for (SplitMember& m : *members) m.Begin(step, batch);
  while (!members->front().done()) {
    std::vector<std::vector<std::vector<int32_t>>> came(n, std::vector<std::vector<int32_t>>(n));
    for (size_t from = 0; from < n; ++from) {
      const auto& ids = (*members)[from].Draw();
      for (size_t to = 0; to < n; ++to) came[to][from] = ids[to];
    }
    for (size_t m = 0; m < n; ++m) {
      const absl::Status received = (*members)[m].Receive(came[m]);
      CHECK(received.ok()) << received;
    }
  }
  std::vector<SplitSample> samples;
  for (SplitMember& m : *members) samples.push_back(m.Take());
  return samples;
}

std::vector<SplitMember> MakeSplitMembers(const CsrGraph* graph, const VertexOwners* owners,
                                          int members, const std::vector<int>& fanouts,
                                          uint64_t seed) {
  std::vector<SplitMember> all;
  all.reserve(members);
  for (int m = 0; m < members; ++m) all.emplace_back(graph, owners, m, members, fanouts, seed);
  return all;
}

}  // namespace pipelab
