#include "tools/base/did_you_mean.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(DidYouMean, NamesTheNearest) {
  const std::vector<absl::string_view> schemes = {"gpipe", "1f1b", "zb_h1", "zb_h2", "interleaved"};
  EXPECT_EQ(DidYouMean("1F1B", schemes), "; did you mean 1f1b?");
  EXPECT_EQ(DidYouMean("zb-h2", schemes), "; did you mean zb_h2?");
  EXPECT_EQ(DidYouMean("zbh1", schemes), "; did you mean zb_h1?");
  EXPECT_EQ(DidYouMean("gpiep", schemes), "; did you mean gpipe?");  // swapped
  EXPECT_EQ(DidYouMean("intreleavd", schemes), "; did you mean interleaved?");
  EXPECT_EQ(DidYouMean("inter", schemes), "; did you mean interleaved?");  // its beginning
  EXPECT_EQ(DidYouMean("micro-batches", {"machines", "micro_batches"}, "--"),
            "; did you mean --micro_batches?");
}

TEST(DidYouMean, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(DidYouMean("moon", {"dgx-a100", "summit"}), "");
  EXPECT_EQ(DidYouMean("", {"a", "b"}), "");
  EXPECT_EQ(DidYouMean("ab", {"cd", "abcdef"}), "");
  EXPECT_EQ(DidYouMean("gpipe", {}), "");
  EXPECT_EQ(DidYouMean(std::string(100000, 'a'), {"aaaa"}), "");
}

TEST(NearestOrAll, ListsAllWhereNothingIsNear) {
  EXPECT_EQ(NearestOrAll("gpiep", {"gpipe", "1f1b"}), "; did you mean gpipe?");
  EXPECT_EQ(NearestOrAll("moon", {"gpipe", "1f1b"}), "; there are gpipe, 1f1b");
}

TEST(DidYouMean, TheNearerWins) {
  EXPECT_EQ(DidYouMean("zb_h1", {"zb_h2", "zb_h1"}), "; did you mean zb_h1?");
  EXPECT_EQ(DidYouMean("devices", {"device_speed", "device"}), "; did you mean device?");
}

}  // namespace
}  // namespace pipelab
