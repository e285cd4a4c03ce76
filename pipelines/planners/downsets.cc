#include "pipelines/planners/downsets.h"

#include <algorithm>

#include "glog/logging.h"

namespace pipelab {
namespace {

constexpr uint64_t kLongestChain = 127;
constexpr int kChainsInWord = 8;

// Each node after those that it needs.
std::vector<int> Order(const std::vector<std::vector<int>>& needs) {
  std::vector<int> missing(needs.size()), order;
  std::vector<std::vector<int>> needed_by(needs.size());
  for (size_t v = 0; v < needs.size(); ++v) {
    missing[v] = static_cast<int>(needs[v].size());
    for (int u : needs[v]) needed_by[u].push_back(static_cast<int>(v));
    if (missing[v] == 0) order.push_back(static_cast<int>(v));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (int w : needed_by[order[i]]) {
      if (--missing[w] == 0) order.push_back(w);
    }
  }
  CHECK_EQ(order.size(), needs.size()) << "a cycle";
  return order;
}

// No fewer than these: all nodes above a depth, with any of those there.
int64_t FewestSets(const std::vector<std::vector<int>>& needs) {
  std::vector<size_t> depth(needs.size());
  std::vector<int> width;  // [depth]
  for (int v : Order(needs)) {
    for (int u : needs[v]) depth[v] = std::max(depth[v], depth[u] + 1);
    width.resize(std::max(width.size(), depth[v] + 1));
    ++width[depth[v]];
  }
  int64_t sets = 1;
  for (int w : width) sets += (int64_t{1} << std::min(w, 31)) - 1;
  return sets;
}

}  // namespace

class Downsets::Builder {
 public:
  explicit Builder(const std::vector<std::vector<int>>& needs) : needs_(needs) {
    const std::vector<std::vector<uint8_t>> reaches = PutOnChains();
    const int words = (static_cast<int>(chains_.size()) + kChainsInWord - 1) / kChainsInWord;
    sets_.words_ = std::max(words, 1);
    FindRequirements(reaches);
  }

  bool Grow(int limit) {
    Rehash(1024);
    const std::vector<uint64_t> empty(sets_.words_);
    Insert(empty.data(), -1, -1);
    std::vector<uint64_t> grown(sets_.words_);
    for (int set = 0; set < sets_.size(); ++set) {
      for (size_t c = 0; c < chains_.size(); ++c) {
        const int word = static_cast<int>(c) / kChainsInWord;
        const int shift = 8 * (static_cast<int>(c) % kChainsInWord);
        const uint64_t position = (sets_.key(set)[word] >> shift) & 127;
        if (position >= chains_[c].size()) continue;
        const int node = chains_[c][position];
        if (!IncludesRequirement(set, node)) continue;
        std::copy_n(sets_.key(set), sets_.words_, grown.begin());
        grown[word] += uint64_t{1} << shift;
        if (!Insert(grown.data(), set, node)) continue;
        if (sets_.size() > limit) return false;
      }
    }
    return true;
  }

  Downsets Take() { return std::move(sets_); }

 private:
  // Greedily: below a node is the top of a chain that it needs, directly if there is one. Reaches
  // are how far a set must reach on each chain before the node can be added.
  std::vector<std::vector<uint8_t>> PutOnChains() {
    std::vector<std::vector<uint8_t>> reaches(needs_.size());  // [node][chain]
    sets_.place_.resize(needs_.size());
    for (int v : Order(needs_)) {
      std::vector<uint8_t>& reach = reaches[v];
      reach.resize(chains_.size());
      for (int u : needs_[v]) {
        for (size_t c = 0; c < reaches[u].size(); ++c) reach[c] = std::max(reach[c], reaches[u][c]);
        const Place& p = sets_.place_[u];
        uint8_t& own = reach[p.word * kChainsInWord + p.shift / 8];
        own = std::max(own, static_cast<uint8_t>(p.position + 1));
      }
      int best = -1;
      for (size_t c = 0; c < chains_.size(); ++c) {
        if (chains_[c].size() >= kLongestChain || reach[c] < chains_[c].size()) continue;
        const bool direct = std::count(needs_[v].begin(), needs_[v].end(), chains_[c].back()) > 0;
        if (best < 0 || direct) best = static_cast<int>(c);
        if (direct) break;
      }
      if (best < 0) {
        best = static_cast<int>(chains_.size());
        chains_.emplace_back();
      }
      sets_.place_[v] = {best / kChainsInWord, 8 * (best % kChainsInWord), chains_[best].size()};
      chains_[best].push_back(v);
    }
    return reaches;
  }

  void FindRequirements(const std::vector<std::vector<uint8_t>>& reaches) {
    required_.assign(needs_.size() * sets_.words_, 0);
    for (size_t v = 0; v < needs_.size(); ++v) {
      for (size_t c = 0; c < reaches[v].size(); ++c) {
        required_[v * sets_.words_ + c / kChainsInWord] |= uint64_t{reaches[v][c]}
                                                           << 8 * (c % kChainsInWord);
      }
    }
  }

  bool IncludesRequirement(int set, int node) const {
    const uint64_t *a = sets_.key(set), *b = &required_[static_cast<size_t>(node) * sets_.words_];
    for (int w = 0; w < sets_.words_; ++w) {
      if ((((a[w] | kHigh) - b[w]) & kHigh) != kHigh) return false;
    }
    return true;
  }

  uint64_t Hash(const uint64_t* key) const {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int w = 0; w < sets_.words_; ++w) {
      hash = (hash ^ key[w]) * 0xbf58476d1ce4e5b9u;
      hash ^= hash >> 29;
    }
    return hash * 0x94d049bb133111ebu;
  }

  // The slot of the key, or the free one where it belongs.
  size_t Find(const uint64_t* key) const {
    size_t slot = (Hash(key) >> 20) & (table_.size() - 1);
    while (table_[slot] >= 0 && !std::equal(key, key + sets_.words_, sets_.key(table_[slot]))) {
      slot = (slot + 1) & (table_.size() - 1);
    }
    return slot;
  }

  void Rehash(size_t slots) {
    table_.assign(slots, -1);
    for (int set = 0; set < sets_.size(); ++set) table_[Find(sets_.key(set))] = set;
  }

  bool Insert(const uint64_t* key, int parent, int node) {
    const size_t slot = Find(key);
    if (table_[slot] >= 0) return false;
    table_[slot] = sets_.size();
    sets_.keys_.insert(sets_.keys_.end(), key, key + sets_.words_);
    sets_.parents_.push_back(parent);
    sets_.added_.push_back(node);
    if (2 * sets_.parents_.size() > table_.size()) Rehash(2 * table_.size());
    return true;
  }

  const std::vector<std::vector<int>>& needs_;
  std::vector<std::vector<int>> chains_;
  std::vector<uint64_t> required_;  // [node][word]
  std::vector<int> table_;
  Downsets sets_;
};

absl::optional<Downsets> Downsets::Make(const std::vector<std::vector<int>>& needs, int limit) {
  if (FewestSets(needs) > limit) return absl::nullopt;  // before n^2 bits are made
  Builder builder(needs);
  if (!builder.Grow(limit)) return absl::nullopt;
  return builder.Take();
}

std::vector<int> Downsets::Nodes(int set, int without) const {
  std::vector<int> nodes;
  for (int v = 0; v < num_nodes(); ++v) {
    if (Has(set, v) && !Has(without, v)) nodes.push_back(v);
  }
  return nodes;
}

}  // namespace pipelab
