#include "pipelines/cost/slice_exchange.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

std::vector<int> ChunksOf(const std::vector<SliceExchange>& spread) {
  std::vector<int> chunks;
  for (const SliceExchange& e : spread) chunks.push_back(e.chunks);
  return chunks;
}

TEST(SliceExchange, HeavyDevicesGiveToLightOnes) {
  const std::vector<SliceExchange> spread = SpreadChunks({7, 6, 5, 4});
  EXPECT_EQ(ChunksOf(spread), std::vector<int>({6, 6, 5, 5}));
  EXPECT_EQ(spread[0].given, 1);
  EXPECT_EQ(spread[3].received, 1);
  EXPECT_EQ(spread[1].partners, 0);
  // One gives to three.
  EXPECT_EQ(ChunksOf(SpreadChunks({8, 0, 0, 0})), std::vector<int>({2, 2, 2, 2}));
  EXPECT_EQ(SpreadChunks({8, 0, 0, 0})[0].partners, 3);
}

// Every device computes the balanced share of the slices that are there at a time, to within one
// chunk; what is given is received; and nobody both gives and receives.
TEST(SliceExchange, SpreadsWhatThereIs) {
  for (int devices = 1; devices <= 9; ++devices) {
    for (int slices = 1; slices <= 20; ++slices) {
      for (int first = 0; first < slices; ++first) {
        int sum = 0, chunks = 0, given = 0, received = 0, least = slices, most = 0;
        const std::vector<SliceExchange> exchanges = ExchangesAt(devices, slices, first);
        for (int d = 0; d < devices; ++d) {
          const int slice = ((first - d) % slices + slices) % slices;
          const SliceExchange& e = exchanges[d];
          sum += slice;
          chunks += e.chunks;
          given += e.given;
          received += e.received;
          EXPECT_EQ(e.chunks, slice - e.given + e.received);
          EXPECT_TRUE(e.given == 0 || e.received == 0);
          least = std::min(least, e.chunks);
          most = std::max(most, e.chunks);
        }
        EXPECT_EQ(chunks, sum);
        EXPECT_EQ(given, received);
        EXPECT_LE(most - least, 1) << devices << " " << slices << " " << first;
      }
    }
  }
}

// The fewest chunks that can move are those above the balanced share, of whole chunks.
TEST(SliceExchange, MovesNoMoreThanNeeded) {
  for (int devices = 2; devices <= 8; ++devices) {
    for (int slices = devices; slices <= 3 * devices; slices += devices) {
      for (int first = 0; first < slices; ++first) {
        std::vector<int> chunks;
        for (int d = 0; d < devices; ++d)
          chunks.push_back(((first - d) % slices + slices) % slices);
        const std::vector<SliceExchange> spread = SpreadChunks(chunks);
        const int sum = std::accumulate(chunks.begin(), chunks.end(), 0);
        const int low = sum / devices, larger = sum % devices;
        // The devices that had most keep the one that is left over.
        std::vector<int> sorted = chunks;
        std::sort(sorted.rbegin(), sorted.rend());
        int least = 0, moved = 0;
        for (int d = 0; d < devices; ++d) least += std::max(0, sorted[d] - low - (d < larger));
        for (const SliceExchange& e : spread) moved += e.given;
        EXPECT_EQ(moved, least) << devices << " " << slices << " " << first;
      }
    }
  }
}

TEST(SliceExchange, Bytes) {
  SliceExchange e;
  e.given = 3;
  e.partners = 2;
  const AttentionRow row = {64, 32, 4};
  // Two times queries of 64, three times keys and values of 32.
  EXPECT_EQ(ExchangeBytes(e, row, 10, 2, /*backward=*/false), Bytes(10 * 2 * (2 * 64 + 3 * 32)));
  // Outputs and log-sum-exps where they are more.
  e.given = 0;
  e.received = 0;
  EXPECT_EQ(ExchangeBytes(e, row, 10, 2, /*backward=*/false), Bytes(10 * 2 * (2 * 64 + 2 * 8)));
  EXPECT_EQ(ExchangeBytes(e, row, 10, 2, /*backward=*/true), Bytes(10 * 4 * (2 * 64 + 2 * 8)));
}

}  // namespace
}  // namespace pipelab
