#include "models/data/camera_frames.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/pgm.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Pgm, PlainAndRaw) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GreyImage raw,
                               ParsePgm("P5\n# a camera\n3 2\n255\n\x01\x02\x03\x04\x05\xFF", "f"));
  EXPECT_EQ(raw.width, 3);
  EXPECT_EQ(raw.height, 2);
  EXPECT_THAT(raw.pixels, ElementsAre(1, 2, 3, 4, 5, 255));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GreyImage plain, ParsePgm("P2 2 2 # x\n 5\n0 1 4\n5", "f"));
  EXPECT_THAT(plain.pixels, ElementsAre(0, 51, 204, 255)) << "5 is white";
}

TEST(Pgm, NamesTheFault) {
  const auto fault = [](const std::string& bytes) {
    return std::string(ParsePgm(bytes, "a.pgm").status().message());
  };
  EXPECT_EQ(fault("PNG"), "a.pgm: is no PGM picture: it must begin with P2 or P5");
  EXPECT_EQ(fault("P5 3"), "a.pgm: ends before the height");
  EXPECT_EQ(fault("P5 3 x 255"), "a.pgm: the height is no number");
  EXPECT_EQ(fault("P5 3 99999999999 255"), "a.pgm: the height must be 1 to 32768");
  EXPECT_EQ(fault("P5 3 2 65535 abc"), "a.pgm: grey levels to 65535; at most 255 can be read");
  EXPECT_EQ(fault("P5 3 2 255 abcd"), "a.pgm: ends after 4 of 6 pixels");
  EXPECT_EQ(fault("P2 3 2 255 1 2 3 4"), "a.pgm: ends after 4 of 6 pixels");
  EXPECT_EQ(fault("P2 2 1 9 1 10"), "a.pgm: the level of pixel 1 must be 0 to 9");
  EXPECT_EQ(fault("P5 1 1 9 \x0A"), "a.pgm: pixel 0 has level 10 of 9");
}

class Frames : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_THAT(WriteFileAtomically(JoinPath(folder_, name), bytes), IsOk());
  }
  std::string Fault(int64_t reduce) {
    return std::string(ReadFrames(folder_, reduce).status().message());
  }

  const std::string folder_ =
      MakeTemporaryDirectory(JoinPath(testing::TempDir(), "frames-")).value();
};

TEST_F(Frames, AreReducedAndFollowEachOther) {
  Write("image.0001.pgm", "P2 2 2 255 0 51 102 255");
  Write("image.0002.pgm", "P2 2 2 255 255 255 255 255");
  Write("image.0003.pgm", "P2 2 2 255 0 0 0 0");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FrameStream frames, ReadFrames(folder_, 2));
  EXPECT_THAT(frames.levels, ElementsAre(0.4F, 1.0F, 0.0F));
  EXPECT_NEAR(CopyError(frames), (0.6 * 0.6 + 1) / 2, 1e-6);
  const NextFrameSource source(&frames);
  std::vector<float> image(3), targets(3);
  source.FillFloats(0, /*step=*/0, /*first_sample=*/0, absl::MakeSpan(image));
  source.FillFloats(1, 0, 0, absl::MakeSpan(targets));
  EXPECT_THAT(image, ElementsAre(0.4F, 1.0F, 0.4F));
  EXPECT_THAT(targets, ElementsAre(1.0F, 0.0F, 1.0F));
}

TEST_F(Frames, FaultsNameTheFile) {
  EXPECT_THAT(Fault(1), HasSubstr("needs two frames or more"));
  Write("image.0001.pgm", "P2 2 2 255 0 51 102 255");
  EXPECT_THAT(Fault(1), HasSubstr("needs two frames or more"));
  EXPECT_THAT(Fault(3), HasSubstr("reduce=3: must divide the sides of"));
  Write("image.0002.pgm", "P2 1 2 255 0 51");
  EXPECT_THAT(Fault(1), HasSubstr("image.0002.pgm: 1 x 2 pixels; the frames before it have 2 x 2"));
  Write("image.0002.pgm", "P2 2 2 255 0 51");
  EXPECT_THAT(Fault(1), HasSubstr("image.0002.pgm: ends after 2 of 4 pixels"));
}

// A camera that stops in mid-picture: the frames before are a stream.
TEST_F(Frames, TheLastMayEndEarly) {
  Write("image.0001.pgm", "P2 2 1 255 0 51");
  Write("image.0002.pgm", "P2 2 1 255 102 255");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FrameStream whole, ReadFrames(folder_, 1));
  EXPECT_EQ(whole.end, "");
  for (const char* cut : {"P2 2 1 255 7", "P5 2", ""}) {
    Write("image.0003.pgm", cut);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const FrameStream frames, ReadFrames(folder_, 1));
    EXPECT_EQ(frames.levels, whole.levels);
    EXPECT_THAT(frames.end, HasSubstr("the 2 frames before it are whole")) << cut;
  }
  Write("image.0004.pgm", "P2 2 1 255 1 2");
  EXPECT_THAT(Fault(1), HasSubstr("image.0003.pgm: ends"));
}

}  // namespace
}  // namespace pipelab
