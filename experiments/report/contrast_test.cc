// Colours of pages and drawings against what is behind them, in light and dark, by WCAG 2's level
// AA: 4.5 for text, 3 for lines and borders that tell something.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "experiments/report/page_texts.h"
#include "experiments/report/svg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pipelab {
namespace {

Colour Parse(const std::string& hex) {
  std::string digits = hex.substr(1);
  if (digits.size() == 3) {
    digits = {digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]};
  }
  uint32_t value = 0;
  EXPECT_EQ(digits.size(), 6u) << hex;
  EXPECT_TRUE(absl::SimpleHexAtoi(digits, &value)) << hex;
  return {static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8),
          static_cast<uint8_t>(value)};
}

// The colour of the first `name` from `at` on that ends with ':' and '#': "--ink: #1a1a1a",
// ".pl-t{fill:#1a1a1a".
Colour ColourAfter(const std::string& text, const std::string& name, size_t at) {
  at = text.find(name, at);
  EXPECT_NE(at, std::string::npos) << name;
  if (at == std::string::npos) return {};
  const size_t begin = text.find('#', at);
  size_t end = begin + 1;
  while (end < text.size() && absl::ascii_isxdigit(text[end])) ++end;
  return Parse(text.substr(begin, end - begin));
}

TEST(ContrastTest, IsWcags) {
  const Colour black{0, 0, 0}, white{255, 255, 255};
  EXPECT_NEAR(Contrast(black, white), 21, 1e-9);
  EXPECT_NEAR(Contrast(white, white), 1, 1e-9);
  EXPECT_NEAR(Contrast(Parse("#767676"), white), 4.54, 0.005);  // the lightest grey for text
}

struct Pair {
  std::string front, back;
  double least;
};

TEST(ContrastTest, OfThePage) {
  std::string css;
  for (const EmbeddedText& text : PageTexts()) {
    if (text.name == "style") css = std::string(text.text);
  }
  ASSERT_FALSE(css.empty());
  const size_t dark = css.find("prefers-color-scheme: dark"), paper = css.find("@media print");
  ASSERT_NE(dark, std::string::npos);
  for (const size_t scheme : {size_t{0}, dark, paper}) {
    for (const Pair& p :
         {Pair{"ink", "page", 7}, Pair{"ink", "stripe", 7}, Pair{"soft", "page", 4.5},
          Pair{"soft", "stripe", 4.5}, Pair{"accent", "page", 4.5}, Pair{"accent", "stripe", 4.5},
          Pair{"edge", "page", 3}, Pair{"edge", "stripe", 3}}) {
      if (scheme == paper && p.front == "edge") continue;  // buttons, which paper has none of
      EXPECT_GE(Contrast(ColourAfter(css, absl::StrCat("--", p.front, ":"), scheme),
                         ColourAfter(css, absl::StrCat("--", p.back, ":"), scheme)),
                p.least)
          << p.front << " on " << p.back << " from byte " << scheme;
    }
  }
}

TEST(ContrastTest, OfDrawings) {
  const std::string svg = Svg("x", 1, 1, "t", "d").Finish();
  const size_t dark = svg.find("prefers-color-scheme:dark");
  ASSERT_NE(dark, std::string::npos);
  for (const size_t scheme : {size_t{0}, dark}) {
    std::vector<Pair> pairs = {{"t", "bg", 7}, {"m", "bg", 4.5}, {"l", "bg", 3}, {"s", "bg", 7},
                               {"w", "i", 3},  {"o", "i", 3},    {"b", "i", 3},  {"b", "bg", 3}};
    for (int line = 1; line <= 7; ++line) pairs.push_back({absl::StrCat("c", line), "bg", 3});
    for (const Pair& p : pairs) {
      EXPECT_GE(Contrast(ColourAfter(svg, absl::StrCat(".pl-", p.front, "{"), scheme),
                         ColourAfter(svg, absl::StrCat(".pl-", p.back, "{"), scheme)),
                p.least)
          << p.front << " on " << p.back << " from byte " << scheme;
    }
  }
}

// Whatever a box's colour and shade, its number is read.
TEST(ContrastTest, OfNumbersInBoxes) {
  for (const Colour c : {kBlue, kOrange, kGreen, kVermillion, kPurple, kSky, kYellow}) {
    for (double share = 0; share <= 1; share += 0.05) {
      const Colour box = Lighten(c, share);
      EXPECT_GE(Contrast(Parse(InkOn(box)), box), 4.5) << Hex(box);
    }
  }
}

}  // namespace
}  // namespace pipelab
