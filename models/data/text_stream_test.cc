// A text as a stream: samples are the text, each byte is a target once, and what is left at the end
// is told.
#include "models/data/text_stream.h"

#include <vector>

#include "gtest/gtest.h"
#include "models/data/token_fields.h"

namespace pipelab {
namespace {

std::vector<uint8_t> Text(int64_t n) {
  std::vector<uint8_t> text;
  for (int64_t i = 0; i < n; ++i) text.push_back(static_cast<uint8_t>(i * i % 251));
  return text;
}

TEST(TextStream, EveryByteIsATargetOnceAndInOrder) {
  for (int64_t context = 1; context <= 7; ++context) {
    for (int64_t stride = 1; stride <= context; ++stride) {
      for (int64_t n = context + 1; n <= 4 * context + 3; ++n) {
        SCOPED_TRACE(testing::Message() << context << " " << stride << ", text of " << n);
        const std::vector<uint8_t> text = Text(n);
        const TextStream stream(text, 251, context, stride);
        const int64_t samples = stream.examples();
        std::vector<int32_t> tokens(samples * context), targets(samples * context);
        stream.FillIds(stream.FindField(kTokens), /*step=*/3, 0, absl::MakeSpan(tokens));
        stream.FillIds(stream.FindField(kTargets), 0, 0, absl::MakeSpan(targets));
        int64_t place = context - stride + 1;  // of the next target
        for (int64_t i = 0; i < samples * context; ++i) {
          const int64_t at = i / context * stride + i % context;
          ASSERT_EQ(tokens[i], text[at]);
          if (i % context < context - stride) {
            ASSERT_EQ(targets[i], kNoData);
          } else {
            ASSERT_EQ(at + 1, place++);
            ASSERT_EQ(targets[i], text[at + 1]);
          }
        }
        ASSERT_LT(n - place, stride) << "another sample does not fit";
        EXPECT_EQ(stream.End().empty(), place == n);
        // Behind the last sample comes the first.
        std::vector<int32_t> again(context);
        stream.FillIds(0, 0, samples, absl::MakeSpan(again));
        EXPECT_EQ(again, std::vector<int32_t>(tokens.begin(), tokens.begin() + context));
      }
    }
  }
}

TEST(TextStream, SaysWhereTheTextEnds) {
  const std::vector<uint8_t> text = Text(31);
  EXPECT_EQ(TextStream(text, 251, 8, 8).End(),
            "the text ends in mid-sample: sample 3 has 6 of its 8 new bytes; the 3 before it are "
            "whole");
  EXPECT_EQ(TextStream(text, 251, 8, 1).End(), "");
  EXPECT_FALSE(TextStream(text, 251, 8, 8).fields()[1].padded);
}

TEST(TextStreamDeathTest, TextsAreLongerThanTheContext) {
  const std::vector<uint8_t> text = Text(8);
  EXPECT_DEATH(TextStream(text, 251, 8, 1), "Check failed");
  EXPECT_DEATH(TextStream(text, 251, 4, 5), "Check failed");
}

}  // namespace
}  // namespace pipelab
