// SALIENT's public sampler, rebuilt from its sources (MITIBMxGraph/SALIENT, MLSys 2022 artifact)
// for tests and benchmarks: one flat hash map of vertices over all hops, Floyd's method with a
// linear scan, each row's edges sorted. It draws from [0, j) where Floyd's method needs [0, j], so
// that the last neighbours come too seldom.
#ifndef PIPELAB_MODELS_DATA_PUBLIC_SAMPLER_TESTING_H_
#define PIPELAB_MODELS_DATA_PUBLIC_SAMPLER_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "models/data/graph_store.h"

namespace pipelab {

using PublicGenerator = std::minstd_rand;  // a cheap one

inline void PublicDraw(PublicGenerator* generator, int64_t degree, int fanout,
                       std::vector<int64_t>* places) {
  places->clear();
  for (int64_t j = degree - fanout; j < degree; ++j) {
    const int64_t place = j == 0 ? 0 : static_cast<int64_t>((*generator)()) % j;
    const bool taken = std::find(places->begin(), places->end(), place) != places->end();
    places->push_back(taken ? j : place);
  }
}

// Edges of all hops.
inline int64_t PublicSample(const CsrGraph& graph, absl::Span<const int> fanouts,
                            absl::Span<const int32_t> targets, PublicGenerator* generator) {
  std::vector<int64_t> known(targets.begin(), targets.end()), places;
  absl::flat_hash_map<int64_t, int64_t> place_of;
  for (size_t i = 0; i < known.size(); ++i) place_of[known[i]] = static_cast<int64_t>(i);
  int64_t edges = 0;
  for (int fanout : fanouts) {
    std::vector<int64_t> offsets = {0}, columns;
    const size_t count = known.size();
    for (size_t i = 0; i < count; ++i) {
      const auto all = graph.neighbours(static_cast<int32_t>(known[i]));
      const auto add = [&](int64_t u) {
        const auto [it, fresh] = place_of.insert({u, static_cast<int64_t>(known.size())});
        if (fresh) known.push_back(u);
        columns.push_back(it->second);
      };
      if (static_cast<int64_t>(all.size()) <= fanout) {
        for (int32_t u : all) add(u);
      } else {
        PublicDraw(generator, static_cast<int64_t>(all.size()), fanout, &places);
        for (int64_t place : places) add(all[place]);
      }
      std::sort(columns.begin() + offsets.back(), columns.end());
      offsets.push_back(static_cast<int64_t>(columns.size()));
    }
    edges += static_cast<int64_t>(columns.size());
  }
  return edges;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_PUBLIC_SAMPLER_TESTING_H_
