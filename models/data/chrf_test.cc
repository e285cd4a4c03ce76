// chrF against values worked out by hand from the paper's definition.
#include "models/data/chrf.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

double Score(absl::string_view hypothesis, absl::string_view reference) {
  Chrf chrf;
  chrf.Add(hypothesis, reference);
  return chrf.Value();
}

double FScore(double p, double r) { return 5 * p * r / (4 * p + r); }

TEST(Chrf, Ends) {
  EXPECT_EQ(Score("Deutschland", "Deutschland"), 1);
  EXPECT_EQ(Score("abc", "xyz"), 0);
  EXPECT_EQ(Score("", "xyz"), 0);
  EXPECT_EQ(Score("abc", ""), 0);
  EXPECT_EQ(Chrf().Value(), 0);
  EXPECT_EQ(Score("a", "a"), 1);  // no longer n-grams on either side
}

TEST(Chrf, ByHand) {
  // "abc" and "abd": 2 of 3 characters, 1 of 2 pairs, 0 of 1 triples; nothing longer.
  EXPECT_NEAR(Score("abc", "abd"), (2.0 / 3 + 1.0 / 2 + 0) / 3, 1e-12);
  // "ab" and "abcd": precision 1, 1; recall 2/4, 1/3. Triples only in the reference: left out.
  EXPECT_NEAR(Score("ab", "abcd"), FScore(1, (2.0 / 4 + 1.0 / 3) / 2), 1e-12);
  EXPECT_NEAR(Score("abcd", "ab"), FScore((2.0 / 4 + 1.0 / 3) / 2, 1), 1e-12);
  // Recall counts twice as much: what is missing costs more than what is too much.
  EXPECT_LT(Score("ab", "abcd"), Score("abcd", "ab"));
}

TEST(Chrf, RepeatedGramsAreClipped) {
  // "aaaa" and "aab": characters min(4, 2) = 2 of 4 and of 3; pairs 1 of 3 and of 2; triples 0.
  const double p = (2.0 / 4 + 1.0 / 3 + 0) / 3, r = (2.0 / 3 + 1.0 / 2 + 0) / 3;
  EXPECT_NEAR(Score("aaaa", "aab"), FScore(p, r), 1e-12);
}

TEST(Chrf, SpaceDoesNotCountAndCharactersAreNotBytes) {
  EXPECT_EQ(Score("New  York", "NewYork"), 1);
  EXPECT_EQ(Score("a\xC2\xA0z", "az"), 1);
  // One of two characters, though one of four bytes differs.
  EXPECT_NEAR(Score("\xC3\xA4\xC3\xB6", "\xC3\xA4\xC3\xBC"), (1.0 / 2 + 0) / 2, 1e-12);
  EXPECT_EQ(Score("\xFF\xFE", "\xFF\xFE"), 1);  // not UTF-8: bytes
}

TEST(Chrf, PairsAreCountedTogether) {
  Chrf chrf;
  chrf.Add("ab", "ab");
  chrf.Add("c", "d");
  // Characters: 2 of 3; pairs: 1 of 1.
  EXPECT_NEAR(chrf.Value(), (2.0 / 3 + 1) / 2, 1e-12);
  Chrf first, second;
  first.Add("ab", "ab");
  second.Add("c", "d");
  second.Add(first);
  EXPECT_EQ(second.Value(), chrf.Value());
}

}  // namespace
}  // namespace pipelab
