#include "pipelines/ir/flow.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

// Who reads what, one pass after the other.
std::string Picture(const PassMap& map, int taken) {
  std::string picture;
  for (int p = 0; p < taken; ++p) {
    if (p > 0) picture += " ";
    for (int m : map.Sources(p)) picture += std::to_string(m);
    if (map.Sources(p).empty()) picture += "-";
  }
  return picture;
}

TEST(PassMap, Pictures) {
  const PassList list = {-1, -1, 0, 1, -1, 2};
  EXPECT_EQ(Picture(PassMap(Reads(), 1, 4, 4, nullptr), 4), "0 1 2 3");
  EXPECT_EQ(Picture(PassMap(Reads(), 1, 4, 2, nullptr), 2), "01 23");
  EXPECT_EQ(Picture(PassMap(Reads(), 1, 2, 4, nullptr), 4), "0 0 1 1");
  EXPECT_EQ(Picture(PassMap(Reads::None(), 1, 4, 4, nullptr), 4), "- - - -");
  EXPECT_EQ(Picture(PassMap(Reads::Late(2), 1, 5, 5, nullptr), 5), "- - 0 1 2");
  EXPECT_EQ(Picture(PassMap(Reads::List(), 1, 6, 6, &list), 6), "- - 0 1 - 2");
  EXPECT_EQ(Picture(PassMap(Reads::Replay(1), 1, 2, 6, nullptr), 6), "0 0 0 1 1 1");
  EXPECT_EQ(Picture(PassMap(Reads::Replay(1), 1, 6, 3, nullptr), 3), "0 2 4");
}

struct Case {
  Reads reads;
  int made, taken;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (int n : {1, 2, 3, 6}) {
    for (int times : {1, 2, 3}) {
      cases.push_back({Reads(), n, n * times});
      cases.push_back({Reads(), n * times, n});
    }
    for (int late = 1; late <= n; ++late) cases.push_back({Reads::Late(late), n, n});
    cases.push_back({Reads::None(), n, n});
    cases.push_back({Reads::List(), n, n});
    for (int made : {1, 2, 3, 5, 6}) {
      for (int window : {1, 2, 4}) cases.push_back({Reads::Replay(window), made, n});
    }
  }
  return cases;
}

// Readers is the inverse of Sources, first and last reads are what a plain count says, and a pass
// has as many samples in its own numbers as its sources have.
TEST(PassMap, TheTwoDirectionsAgree) {
  PassList list = {-1, 0, -1, 2, 1, 3};
  for (const Case& c : Cases()) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(c.reads.kind) << " " << c.reads.number
                                    << ": " << c.made << " " << c.taken);
    const PassMap map(c.reads, /*reader=*/2, c.made, c.taken, &list);
    std::vector<std::vector<int>> readers(c.made);
    for (int p = 0; p < c.taken; ++p) {
      for (int m : map.Sources(p)) {
        ASSERT_TRUE(m >= 0 && m < c.made) << p << " reads " << m;
        readers[m].push_back(p);
      }
    }
    for (int m = 0; m < c.made; ++m) {
      std::vector<int> first;
      for (int p : map.Readers(m)) {
        if (p < c.taken) first.push_back(p);
      }
      std::vector<int> expected = readers[m];
      if (c.reads.replay() && !expected.empty()) expected.resize(1);
      EXPECT_EQ(first, expected) << m;
    }
    for (int p = 0; p < c.taken; ++p) {
      const PassRange sources = map.Sources(p);
      if (sources.empty()) {
        EXPECT_FALSE(map.IsFirstRead(p)) << p;
        continue;
      }
      EXPECT_EQ(map.IsFirstRead(p), !c.reads.replay() || readers[sources.first].front() == p);
      EXPECT_EQ(map.IsLastRead(p), !c.reads.replay() || readers[sources.first].back() == p);
      const int samples = map.SamplePass(p);
      EXPECT_EQ(samples, c.reads.same() ? p : sources.first);
      EXPECT_EQ(map.FirstReader(samples), c.reads.same() ? p : readers[sources.first].front());
    }
    EXPECT_EQ(map.HasUnequalPasses(), c.reads.replay() && c.made != c.taken);
  }
}

TEST(PassList, KeepsItsInverse) {
  PassList list;
  EXPECT_TRUE(list.empty());
  for (int32_t source : {-1, -1, 0, 7}) list.push_back(source);
  EXPECT_EQ(list.size(), 4);
  EXPECT_EQ(list.Reader(0), 2);
  EXPECT_EQ(list.Reader(1), -1);
  EXPECT_EQ(list.Reader(7), -1) << "nothing is there to be read";
  list.Set(2, 1);
  EXPECT_EQ(list.Reader(0), -1);
  EXPECT_EQ(list.Reader(1), 2);
  list.Set(3, 1);  // a second reader: the validator refuses it
  list.Set(3, -1);
  EXPECT_EQ(list.Reader(1), -1);
  EXPECT_EQ(list, (PassList{-1, -1, 1, -1}));
}

}  // namespace
}  // namespace pipelab
