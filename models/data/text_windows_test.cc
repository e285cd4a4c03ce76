// Windows over a text, over whole grids of lengths: every target that counts does so once, in
// order, and has half a window before it.
#include "models/data/text_windows.h"

#include <vector>

#include "gtest/gtest.h"
#include "models/data/token_fields.h"

namespace pipelab {
namespace {

std::vector<uint8_t> SquaresText(int64_t n) {
  std::vector<uint8_t> text;
  for (int64_t i = 0; i < n; ++i) text.push_back(static_cast<uint8_t>(i * i % 251));
  return text;
}

TEST(TextWindows, EveryTargetOnceAndInOrder) {
  for (int64_t context = 1; context <= 9; ++context) {
    for (int64_t n = context + 1; n <= 4 * context + 3; ++n) {
      SCOPED_TRACE(testing::Message() << "context " << context << ", text of " << n);
      const std::vector<uint8_t> text = SquaresText(n);
      const TextWindows windows(text, 251, context);
      ASSERT_GE(windows.samples(), 1);
      int64_t place = windows.first_place();
      for (int64_t s = 0; s < windows.samples(); ++s) {
        for (int64_t row = windows.first_row(); row < context; ++row) {
          EXPECT_EQ(windows.Place(s, row), place++);
        }
      }
      EXPECT_EQ(place, windows.end_place());
      EXPECT_LE(windows.end_place(), n);
      EXPECT_GT(windows.end_place() + context - context / 2, n);  // another window does not fit
      EXPECT_GE(windows.first_row() + 1, (context + 1) / 2);      // tokens before, in the window
    }
  }
}

TEST(TextWindows, SamplesAreTheText) {
  const int64_t context = 6;
  const std::vector<uint8_t> text = SquaresText(40);
  const TextWindows windows(text, 251, context);
  const int64_t samples = windows.samples();
  std::vector<int32_t> tokens(samples * context), targets(samples * context);
  windows.FillIds(windows.FindField(kTokens), /*step=*/7, 0, absl::MakeSpan(tokens));
  windows.FillIds(windows.FindField(kTargets), 0, 0, absl::MakeSpan(targets));
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t row = 0; row < context; ++row) {
      EXPECT_EQ(tokens[s * context + row], text[windows.Place(s, row) - 1]);
      EXPECT_EQ(targets[s * context + row], text[windows.Place(s, row)]);
    }
  }
  // A part of the samples is that part of the whole.
  std::vector<int32_t> part(2 * context);
  windows.FillIds(0, 0, 3, absl::MakeSpan(part));
  EXPECT_EQ(part, std::vector<int32_t>(tokens.begin() + 3 * context, tokens.begin() + 5 * context));
}

TEST(TextWindowsDeathTest, NoSampleBehindTheLast) {
  const std::vector<uint8_t> text = SquaresText(20);
  const TextWindows windows(text, 251, 8);
  std::vector<int32_t> out(8);
  EXPECT_DEATH(windows.FillIds(0, 0, windows.samples(), absl::MakeSpan(out)), "Check failed");
  EXPECT_DEATH(TextWindows(text, 251, 20), "Check failed");
}

}  // namespace
}  // namespace pipelab
