// The figures of //experiments:streams hold together.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/streams/stream_learning.h"
#include "experiments/streams/stream_points.h"
#include "gtest/gtest.h"
#include "models/data/camera_frames.h"
#include "models/data/text_stream.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(StreamPoints, ATickIsTheLongestStage) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<StreamPoint> points, StreamPoints({cluster}));
  EXPECT_EQ(points.size(), 48u);
  for (const StreamPoint& p : points) {
    SCOPED_TRACE(testing::Message() << p.layers << " " << p.side << " " << p.devices << " "
                                    << static_cast<int>(p.kind));
    EXPECT_LE(p.speedup(), p.devices);
    // Steps are little beside passes, and hidden messages nothing.
    const double of_longest = p.speedup() * p.longest / p.devices;
    EXPECT_LE(of_longest, 1.01);
    EXPECT_GE(of_longest, p.kind == TickKind::kSlowCopies ? 0.7 : 0.9);
    EXPECT_GE(p.latency, Nanoseconds(0));
    EXPECT_LT(p.latency / p.tick, 2 * p.devices);
  }
  EXPECT_THAT(StreamTable(points).status(), IsOk());
  EXPECT_THAT(ArrivalTable(points[3]).status(), IsOk());
  for (const Claim& c : StreamClaims(points)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
}

TEST(StreamLessons, LateGradientsAreLateOnly) {
  const FrameStream frames = SyntheticFrames(/*frames=*/21, /*height=*/12, /*width=*/16);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<StreamLesson> lessons, FrameLessons(frames));
  ASSERT_EQ(lessons.size(), 8u);
  for (const StreamLesson& l : lessons) {
    EXPECT_EQ(l.samples, 20);
    if (l.optimizer != "adam") continue;
    EXPECT_GT(l.online[0], l.online[1]) << "it learns at " << l.learning_rate;
    EXPECT_NE(l.online, l.late);
  }
  EXPECT_THAT(LessonTable(lessons, CopyError(frames)).status(), IsOk());
  for (const Claim& c : LessonClaims(lessons)) EXPECT_THAT(CheckClaim(c), IsOk());
  for (const Claim& c : LessonClaims({})) EXPECT_EQ(c.state, ClaimState::kNotMade);
}

// The first pass' loss, in nats per byte, is that of guessing where little is learned, on one
// device and on four, and it falls.
TEST(StreamLessons, TextInItsOrder) {
  const std::string words = "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc";
  std::vector<uint8_t> tokens;
  for (char c : words) tokens.push_back(static_cast<uint8_t>(c - 'a'));
  for (const int64_t stride : {1, 4}) {
    const TextStream stream(tokens, /*vocabulary=*/3, /*context=*/4, stride);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<StreamLesson> lessons,
                                 TextLessons(stream, /*samples=*/100));
    ASSERT_EQ(lessons.size(), 8u);
    for (const StreamLesson& l : lessons) {
      EXPECT_EQ(l.stream, stride == 1 ? "next byte" : "next window");
      EXPECT_EQ(l.samples, stream.examples()) << "no more than the text has";
      if (l.optimizer == "adam" && l.learning_rate == 1e-5) {
        EXPECT_NEAR(l.online[0], std::log(3), 0.1);
        EXPECT_NEAR(l.late[0], std::log(3), 0.1);
      }
      EXPECT_LT(l.online[1], l.online[0]) << l.optimizer << l.learning_rate;
    }
    for (const Claim& c : LessonClaims(lessons)) EXPECT_THAT(CheckClaim(c), IsOk());
  }
}

}  // namespace
}  // namespace pipelab
