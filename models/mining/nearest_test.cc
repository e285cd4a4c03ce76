#include "models/mining/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/tensor/arena.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// Values are small integers, so products are exact and many are equal.
Tensor RandomRows(Arena* arena, int64_t rows, int64_t dims, uint64_t seed) {
  const Tensor t = arena->Allocate(DataType::kFloat32, {rows, dims}, MemoryKind::kActivation);
  const CounterRng rng(seed, "rows");
  for (int64_t i = 0; i < t.size(); ++i) t.f32()[i] = static_cast<float>(rng.Below(i, 5)) - 2;
  return t;
}

std::vector<Neighbour> BruteForce(const Tensor& of, int64_t row, const Tensor& among, size_t k) {
  const int64_t dims = of.dim(1);
  std::vector<Neighbour> all;
  for (int64_t j = 0; j < among.dim(0); ++j) {
    float sum = 0;
    for (int64_t d = 0; d < dims; ++d) {
      sum += of.f32()[row * dims + d] * among.f32()[j * dims + d];
    }
    all.push_back({static_cast<int32_t>(j), sum});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.score > b.score; });
  all.resize(std::min(k, all.size()));
  return all;
}

void ExpectSame(absl::Span<const Neighbour> got, absl::Span<const Neighbour> want, int64_t row) {
  ASSERT_EQ(got.size(), want.size()) << row;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].index, want[i].index) << row << " " << i;
    EXPECT_EQ(got[i].score, want[i].score) << row << " " << i;
  }
}

// Sizes over the blocks' edges both ways, and lists longer than there are rows.
TEST(NearestNeighbours, AreThoseOfBruteForceBothWays) {
  Arena arena;
  for (const auto& size : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 1100}, {600, 70}}) {
    const Tensor x = RandomRows(&arena, size.first, 19, 1),
                 y = RandomRows(&arena, size.second, 19, 2);
    for (const int threads : {1, 3}) {
      const Neighbours near = NearestNeighbours(x, y, 4, threads);
      for (int64_t i = 0; i < size.first; ++i) {
        ExpectSame(near.of_x.Of(i), BruteForce(x, i, y, 4), i);
      }
      for (int64_t j = 0; j < size.second; ++j) {
        ExpectSame(near.of_y.Of(j), BruteForce(y, j, x, 4), j);
      }
    }
  }
}

TEST(NearestNeighbours, SameBitsForAnyNumberOfThreads) {
  Arena arena;
  const Tensor x = RandomRows(&arena, 700, 32, 3), y = RandomRows(&arena, 2500, 32, 4);
  for (float& value : x.f32()) value *= 0.1f;
  const Neighbours one = NearestNeighbours(x, y, 3, 1), four = NearestNeighbours(x, y, 3, 4);
  for (int64_t i = 0; i < 700; ++i) ExpectSame(four.of_x.Of(i), one.of_x.Of(i), i);
  for (int64_t j = 0; j < 2500; ++j) ExpectSame(four.of_y.Of(j), one.of_y.Of(j), j);
}

TEST(NeighbourLists, EqualScoresAreInTheOrderOfTheirIndices) {
  NeighbourLists lists(1, 2);
  for (const int32_t index : {5, 9, 2, 7}) lists.Offer(0, {index, 1.0f});
  lists.Offer(0, {0, 0.5f});
  ExpectSame(lists.Of(0), std::vector<Neighbour>{{2, 1.0f}, {5, 1.0f}}, 0);
  EXPECT_EQ(lists.least()[0], 1.0f);
}

}  // namespace
}  // namespace pipelab
