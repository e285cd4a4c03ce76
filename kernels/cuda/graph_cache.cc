#include "kernels/cuda/graph_cache.h"

#include <utility>

#include "absl/hash/hash.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr size_t kMostHashes = 1 << 16;

// Whether it is new there; a full set forgets all.
bool Note(uint64_t hash, absl::flat_hash_set<uint64_t>* set) {
  if (set->size() >= kMostHashes) set->clear();
  return set->insert(hash).second;
}

}  // namespace

bool GraphCounts::operator==(const GraphCounts& o) const {
  return replayed == o.replayed && changed == o.changed && captured == o.captured &&
         plain == o.plain && refused == o.refused && pieces == o.pieces &&
         pieces_in_graphs == o.pieces_in_graphs;
}

GraphCounts operator-(const GraphCounts& a, const GraphCounts& b) {
  return {a.replayed - b.replayed,
          a.changed - b.changed,
          a.captured - b.captured,
          a.plain - b.plain,
          a.refused - b.refused,
          a.pieces - b.pieces,
          a.pieces_in_graphs - b.pieces_in_graphs};
}

absl::Status GraphCache::DoPieces(const WorkList& list, Worker* worker) {
  for (int i = 0; i < list.size(); ++i) PIPELAB_RETURN_IF_ERROR(worker->Do(list[i]));
  return absl::OkStatus();
}

absl::Status GraphCache::Refuse(const WorkList& list, Worker* worker) {
  ++counts_.plain;
  ++counts_.refused;
  Note(absl::Hash<std::string>()(list.skeleton()), &refused_);
  return DoPieces(list, worker);
}

bool GraphCache::Fit(const WorkList& list, Entry* entry) {
  bool changed = false;
  for (int i = 0; i < list.size(); ++i) {
    if (entry->list.SamePiece(list, i)) continue;
    if (!entry->graph->Change(i, list[i])) return false;
    entry->list.TakePiece(list, i);
    changed = true;
  }
  ++(changed ? counts_.changed : counts_.replayed);
  return true;
}

void GraphCache::Remove(Entries::iterator entry) {
  pieces_kept_ -= entry->second.list.size();
  entries_.erase(entry);
}

bool GraphCache::MakeRoom(int pieces) {
  while (pieces_kept_ + pieces > limits_.most_pieces) {
    auto oldest = entries_.begin();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.last_use < oldest->second.last_use) oldest = it;
    }
    if (oldest == entries_.end() || lists_ - oldest->second.last_use < limits_.idle_lists) {
      return false;
    }
    Remove(oldest);
  }
  return true;
}

absl::Status GraphCache::Issue(const WorkList& list, Worker* worker) {
  ++lists_;
  counts_.pieces += list.size();
  if (list.size() < limits_.fewest_pieces) {
    ++counts_.plain;
    return DoPieces(list, worker);
  }
  auto found = entries_.find(list.skeleton());
  if (found == entries_.end()) {
    const uint64_t hash = absl::Hash<std::string>()(list.skeleton());
    if (refused_.contains(hash) || Note(hash, &seen_) || !MakeRoom(list.size())) {
      ++counts_.plain;
      return DoPieces(list, worker);
    }
    std::unique_ptr<Graph> graph = worker->MakeGraph(list);
    if (graph == nullptr) return Refuse(list, worker);
    ++counts_.captured;
    pieces_kept_ += list.size();
    found = entries_.emplace(list.skeleton(), Entry{list, std::move(graph)}).first;
  } else if (!Fit(list, &found->second)) {
    Remove(found);
    return Refuse(list, worker);
  }
  found->second.last_use = lists_;
  counts_.pieces_in_graphs += list.size();
  return found->second.graph->Launch();
}

void GraphCache::Clear() {
  entries_.clear();
  pieces_kept_ = 0;
}

}  // namespace gpu
}  // namespace pipelab
