// Which passes compute a part of which others' attention, under the schemes with token slices.
#include "pipelines/ir/slice_exchange.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

// Each giver has a line: "0F1.3 -> 2: 0..0".
std::string PictureOf(const SliceExchangePlan& plan) {
  std::string text = "\n";
  for (const PassExchange& p : plan.passes) {
    for (const ChunkShare& share : p.given) {
      absl::StrAppend(&text, ToString(p.action), " -> ", share.device, ": ", share.first, "..",
                      share.first + share.count - 1, "\n");
    }
  }
  return text;
}

TEST(SliceExchange, HeavyDevicesGiveToLightOnes) {
  std::vector<std::vector<int>> moved = SpreadChunks({7, 6, 5, 4});
  EXPECT_EQ(moved[0], (std::vector<int>{0, 0, 0, 1}));
  EXPECT_EQ(moved[1], (std::vector<int>{0, 0, 0, 0}));
  // One gives to three.
  EXPECT_EQ(SpreadChunks({8, 0, 0, 0})[0], (std::vector<int>{0, 2, 2, 2}));
  EXPECT_TRUE(SpreadChunks({}).empty());
}

// The fewest chunks that can move are those above the balanced share, of whole chunks; nobody both
// gives and receives.
TEST(SliceExchange, MovesNoMoreThanNeeded) {
  for (int devices = 1; devices <= 8; ++devices) {
    for (int slices = 1; slices <= 20; ++slices) {
      for (int first = 0; first < slices; ++first) {
        std::vector<int> chunks(devices);
        for (int d = 0; d < devices; ++d) chunks[d] = ((first - d) % slices + slices) % slices;
        const std::vector<std::vector<int>> moved = SpreadChunks(chunks);
        const int sum = std::accumulate(chunks.begin(), chunks.end(), 0);
        std::vector<int> sorted = chunks, after = chunks;
        std::sort(sorted.rbegin(), sorted.rend());
        int least = 0, all = 0;
        for (int d = 0; d < devices; ++d) {
          least += std::max(0, sorted[d] - sum / devices - (d < sum % devices ? 1 : 0));
          int given = 0, received = 0;
          for (int other = 0; other < devices; ++other) {
            given += moved[d][other];
            received += moved[other][d];
          }
          EXPECT_TRUE(given == 0 || received == 0);
          after[d] += received - given;
          all += given;
        }
        EXPECT_EQ(all, least) << devices << " " << slices << " " << first;
        const auto [low, high] = std::minmax_element(after.begin(), after.end());
        EXPECT_LE(*high - *low, 1) << devices << " " << slices << " " << first;
      }
    }
  }
}

// All devices run forwards at a time, and backwards.
TEST(SliceExchange, Interleaved) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const SliceExchangePlan plan,
      PlanSliceExchange(MakeOrDie("interleaved_seq1f1b", SlicedSizes(3, 1, 3, 2))));
  EXPECT_EQ(plan.every, 1);
  EXPECT_EQ(PictureOf(plan), R"(
0F0.2 -> 2: 0..0
1F0.2 -> 0: 0..0
2F0.2 -> 1: 0..0
3F0.2 -> 2: 0..0
3B0.2 -> 2: 0..0
2B0.2 -> 1: 0..0
1B0.2 -> 0: 0..0
0B0.2 -> 2: 0..0
)");
}

// Neighbours of 1F1B run forwards and backwards in turn: devices 0 and 2 meet, and 1 and 3.
TEST(SliceExchange, EverySecondDeviceOf1F1B) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const SliceExchangePlan plan,
                               PlanSliceExchange(MakeOrDie("seq1f1b", SlicedSizes(4, 2, 4))));
  EXPECT_EQ(plan.every, 2);
  EXPECT_EQ(PictureOf(plan), R"(
2F0.3 -> 0: 0..0
2B1.3 -> 0: 0..0
3F0.3 -> 1: 0..0
3B1.3 -> 1: 0..0
)");
}

// What is given is received, in one slot; and in each slot devices differ by one chunk at most.
TEST(SliceExchange, EverySlotIsEven) {
  int exchanges = 0;
  for (const char* scheme : {"terapipe", "seq1f1b", "interleaved_seq1f1b", "zb_seq1f1b"}) {
    for (int devices : {3, 4, 5, 8}) {
      for (int slices : {4, 5, 8, 16}) {
        const bool interleaved = std::string(scheme) == "interleaved_seq1f1b";
        const Schedule schedule =
            MakeOrDie(scheme, SlicedSizes(devices, 2 * devices, slices, interleaved ? 2 : 0));
        const absl::StatusOr<SliceExchangePlan> plan = PlanSliceExchange(schedule);
        SCOPED_TRACE(absl::StrCat(scheme, " ", devices, " ", slices));
        ASSERT_THAT(plan, IsOk());
        std::map<int32_t, std::vector<int>> chunks;           // [slot]
        std::map<std::vector<int32_t>, int> given, received;  // [slot, chunks]
        for (const PassExchange& p : plan->passes) {
          chunks[p.slot].push_back(p.Chunks());
          EXPECT_TRUE(p.given.empty() || p.received.empty());
          for (const ChunkShare& share : p.given) {
            EXPECT_LE(share.first + share.count, p.action.slice);
            ++given[{p.slot, share.first, share.count}];
          }
          for (const ChunkShare& share : p.received) {
            ++received[{p.slot, share.first, share.count}];
          }
        }
        EXPECT_EQ(given, received);
        for (const auto& [slot, of_passes] : chunks) {
          const auto [low, high] = std::minmax_element(of_passes.begin(), of_passes.end());
          EXPECT_LE(*high - *low, 1) << slot;
        }
        exchanges += static_cast<int>(plan->passes.size());
      }
    }
  }
  EXPECT_GT(exchanges, 1000);
}

// It is a property of the pass in the program.
TEST(SliceExchange, IsLowered) {
  LoweringOptions options;
  options.slice_exchange = true;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program,
                               Lower(MakeOrDie("seq1f1b", SlicedSizes(4, 2, 4)), options));
  size_t found = 0;
  for (const std::vector<Instruction>& list : program.instructions) {
    for (const Instruction& i : list) {
      if (i.op != OpCode::kCompute || i.arg < 0) continue;
      EXPECT_EQ(program.exchanges[i.arg].action, i.action);
      ++found;
    }
  }
  EXPECT_EQ(found, program.exchanges.size());
}

TEST(SliceExchange, Refusals) {
  const auto refused = [](const char* scheme, const SchemeParams& sizes, const char* what) {
    EXPECT_THAT(PlanSliceExchange(MakeOrDie(scheme, sizes)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused("1f1b", {4, 4}, "slice_exchange: 1f1b has no token slices; take seq1f1b");
  refused("seq1f1b", SlicedSizes(2, 4, 4),
          "slice_exchange: seq1f1b on 2 devices: no two of them have unequal passes of one kind at "
          "a time");
  refused("seq1f1b", SlicedSizes(1, 4, 4), "on 1 devices");
}

}  // namespace
}  // namespace pipelab
