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

inline bool Contains(const int32_t* places, int count, int32_t place) {
  int equal = 0;
  for (int i = 0; i < count; ++i) equal |= places[i] == place;
  return equal != 0;
}

// Key: the seed. Counter: block of the draw and hop, vertex, step.
class Draws {
 public:
  Draws(uint64_t seed, int64_t step, int hop, int32_t v)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{static_cast<uint32_t>(hop) << 24, static_cast<uint32_t>(v),
                 static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)} {}

  uint32_t Next() {
    if (left_ == 0) {
      bits_ = Philox4x32(counter_, key_);
      ++counter_[0];
      left_ = 4;
    }
    return bits_[4 - left_--];
  }

 private:
  const std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> bits_ = {};
  int left_ = 0;
};

// Floyd: `count` different places in [0, degree), each set equally likely. For each j a place in
// [0, j], j itself where that is taken: j + 1 places, or the last ones come too seldom.
inline void FloydPlaces(Draws draws, int32_t degree, int count, int32_t* places) {
  for (int i = 0; i < count; ++i) {
    const int32_t j = degree - count + i;
    const auto place = static_cast<int32_t>(Below(draws.Next(), static_cast<uint32_t>(j) + 1));
    places[i] = Contains(places, i, place) ? j : place;
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
  FloydPlaces(Draws(seed, step, hop, v), static_cast<int32_t>(all.size()), fanout, chosen->data());
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
  for (int32_t i = 0; i < targets; ++i) {
    const int32_t v = known_data[i];
    const absl::Span<const int32_t> all = graph_->neighbours(v);
    int32_t* const out = block->edges.data() + block->offsets[i];
    const int32_t drawn = block->offsets[i + 1] - block->offsets[i];
    if (drawn == static_cast<int32_t>(all.size())) {
      std::copy(all.begin(), all.end(), out);
    } else {
      FloydPlaces(Draws(seed_, step, hop, v), static_cast<int32_t>(all.size()), drawn, out);
      for (int32_t e = 0; e < drawn; ++e) out[e] = all[out[e]];
    }
    for (int32_t e = 0; e < drawn; ++e) {
      const int32_t u = out[e];
      Place& place = places_[u];
      const bool fresh = place.stamp != stamp_;
      known_data[count] = u;  // stays where it is new
      if (fresh) place = {stamp_, count};
      out[e] = place.place;
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
