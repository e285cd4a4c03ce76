#include "models/data/neighbour_sampler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "glog/logging.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// Uniform in [0, n) of 32 random bits: off by n / 2^32 at most.
inline uint32_t Below(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{bits} * n) >> 32);
}

// Philox4x32-10 (tools/base/rng.h) of four counters that differ in their first word, side by side:
// a product waits for the one before it, and four lanes fill the gaps.
struct Bits16 {
  uint32_t bits[16];
};
inline Bits16 Philox4(const std::array<uint32_t, 4>& counter, std::array<uint32_t, 2> key) {
  uint32_t c0[4], c1[4], c2[4], c3[4];
  for (uint32_t l = 0; l < 4; ++l) {
    c0[l] = counter[0] + l;
    c1[l] = counter[1], c2[l] = counter[2], c3[l] = counter[3];
  }
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < 4; ++l) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c0[l], p1 = uint64_t{0xCD9E8D57} * c2[l];
      c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ key[0];
      c1[l] = static_cast<uint32_t>(p1);
      c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ key[1];
      c3[l] = static_cast<uint32_t>(p0);
    }
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  Bits16 out;
  for (int l = 0; l < 4; ++l) {
    out.bits[4 * l] = c0[l];
    out.bits[4 * l + 1] = c1[l];
    out.bits[4 * l + 2] = c2[l];
    out.bits[4 * l + 3] = c3[l];
  }
  return out;
}

// Floyd: `count` different places in [0, degree), each set equally likely. For each j a place in
// [0, j], j itself where that is taken: j + 1 places, or the last ones come too seldom. Random
// numbers have the seed as key and the block of the draw and hop, the vertex and the step as
// counter.
inline void FloydPlaces(uint64_t seed, int64_t step, int hop, int32_t v, int32_t degree, int count,
                        int32_t* places) {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  std::array<uint32_t, 4> counter{static_cast<uint32_t>(hop) << 24, static_cast<uint32_t>(v),
                                  static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)};
  uint64_t seen = 0;  // a bit for each place that may be taken, 64 apart
  for (int i = 0; i < count;) {
    // One block is enough for the last four.
    Bits16 random;
    const int left = count - i;
    if (left <= 4) {
      const std::array<uint32_t, 4> last = Philox4x32(counter, key);
      std::copy(last.begin(), last.end(), random.bits);
    } else {
      random = Philox4(counter, key);
    }
    counter[0] += 4;
    for (int n = 0; n < 16 && i < count; ++n, ++i) {
      const int32_t j = degree - count + i;
      int32_t place = static_cast<int32_t>(Below(random.bits[n], static_cast<uint32_t>(j) + 1));
      const uint64_t bit = uint64_t{1} << (place & 63);
      if ((seen & bit) != 0 && std::find(places, places + i, place) != places + i) place = j;
      seen |= uint64_t{1} << (place & 63);
      places[i] = place;
    }
  }
}

}  // namespace

int64_t GraphSample::num_edges() const {
  int64_t sum = 0;
  for (const GraphBlock& b : blocks) sum += b.num_edges();
  return sum;
}

void DrawNeighbours(const CsrGraph& graph, uint64_t seed, int64_t step, int hop, int32_t v,
                    int fanout, std::vector<int32_t>* chosen) {
  const absl::Span<const int32_t> all = graph.neighbours(v);
  if (static_cast<int64_t>(all.size()) <= fanout) {
    chosen->assign(all.begin(), all.end());
    return;
  }
  chosen->resize(fanout);
  FloydPlaces(seed, step, hop, v, static_cast<int32_t>(all.size()), fanout, chosen->data());
  for (int32_t& place : *chosen) place = all[place];
}

NeighbourSampler::NeighbourSampler(const CsrGraph* graph, std::vector<int> fanouts, uint64_t seed)
    : graph_(graph), fanouts_(std::move(fanouts)), seed_(seed), places_(graph->num_vertices()) {
  CHECK(!fanouts_.empty() && fanouts_.size() < 256);
  for (int f : fanouts_) CHECK_GE(f, 1);
}

GraphSample NeighbourSampler::Sample(int64_t step, absl::Span<const int32_t> targets) {
  if (++stamp_ == 0) {  // after 2^32 samples
    std::fill(places_.begin(), places_.end(), Place());
    stamp_ = 1;
  }
  std::vector<int32_t> known(targets.begin(), targets.end());
  for (int32_t i = 0; i < static_cast<int32_t>(known.size()); ++i) {
    CHECK(known[i] >= 0 && known[i] < graph_->num_vertices()) << "vertex " << known[i];
    Place& place = places_[known[i]];
    CHECK_NE(place.stamp, stamp_) << "vertex " << known[i] << " twice";
    place = {stamp_, i};
  }
  const int hops = static_cast<int>(fanouts_.size());
  GraphSample sample;
  sample.blocks.resize(hops);
  for (int h = 0; h < hops; ++h) Hop(step, h, &known, &sample.blocks[hops - 1 - h]);
  return sample;
}

void NeighbourSampler::Hop(int64_t step, int hop, std::vector<int32_t>* known, GraphBlock* block) {
  const int fanout = fanouts_[hop];
  const auto targets = static_cast<int32_t>(known->size());
  block->num_targets = targets;
  block->offsets.resize(targets + 1);
  // How many edges there are is known before any is drawn, so nothing grows in the loop.
  int64_t edges = 0;
  for (int32_t i = 0; i < targets; ++i) {
    block->offsets[i] = static_cast<int32_t>(edges);
    edges += std::min<int64_t>(fanout, graph_->degree((*known)[i]));
    CHECK_LT(edges, int64_t{1} << 31) << "edges of a sample";
  }
  block->offsets[targets] = static_cast<int32_t>(edges);
  block->edges.resize(edges);
  known->resize(targets + edges);
  int32_t* const known_data = known->data();
  int32_t count = targets;
  // Some vertices at a time: lists' numbers, and then places, come from anywhere in memory, and are
  // asked for while the others of the group are drawn.
  constexpr int32_t kGroup = 32;
  for (int32_t begin = 0; begin < targets; begin += kGroup) {
    const int32_t end = std::min(begin + kGroup, targets);
    for (int32_t i = begin; i < end; ++i) {
      const int32_t v = known_data[i];
      const absl::Span<const int32_t> all = graph_->neighbours(v);
      int32_t* const out = block->edges.data() + block->offsets[i];
      const int32_t drawn = block->offsets[i + 1] - block->offsets[i];
      if (drawn == static_cast<int32_t>(all.size())) {
        for (int32_t e = 0; e < drawn; ++e) out[e] = e;
      } else {
        FloydPlaces(seed_, step, hop, v, static_cast<int32_t>(all.size()), drawn, out);
      }
      for (int32_t e = 0; e < drawn; ++e) __builtin_prefetch(&all[out[e]]);
    }
    for (int32_t i = begin; i < end; ++i) {
      const int32_t* const all = graph_->neighbours(known_data[i]).data();
      for (int32_t e = block->offsets[i]; e < block->offsets[i + 1]; ++e) {
        int32_t& u = block->edges[e];
        u = all[u];
        __builtin_prefetch(&places_[u]);
      }
    }
    for (int32_t e = block->offsets[begin]; e < block->offsets[end]; ++e) {
      const int32_t u = block->edges[e];
      Place& place = places_[u];
      const bool fresh = place.stamp != stamp_;
      known_data[count] = u;  // stays where it is new
      if (fresh) place = {stamp_, count};
      block->edges[e] = place.place;
      count += fresh ? 1 : 0;
    }
  }
  known->resize(count);
  block->sources = *known;
}

std::vector<double> InclusionProbabilities(const CsrGraph& graph, absl::Span<const double> targets,
                                           absl::Span<const int> fanouts) {
  std::vector<double> p(targets.begin(), targets.end());
  for (int f : fanouts) {
    std::vector<double> next(p.size());
    for (int32_t v = 0; v < graph.num_vertices(); ++v) {
      double missed = 1 - p[v];
      for (int32_t u : graph.neighbours(v)) {
        missed *= 1 - std::min(1.0, f / static_cast<double>(graph.degree(u))) * p[u];
      }
      next[v] = 1 - missed;
    }
    p = std::move(next);
  }
  return p;
}

}  // namespace pipelab
