#include "models/data/subwords.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/data/character_vocabulary.h"

namespace pipelab {
namespace {

// By hand: " a" and "ab" stand together four times each, and the space is the smaller; then " ab".
TEST(Subwords, MergesWhatStandsTogetherMostOften) {
  const Subwords subwords = Subwords::Learn({"ab ab abc", "xc abc"}, 2);
  EXPECT_EQ(subwords.merges(), 2);
  EXPECT_EQ(CharactersOf(subwords.Encode("ab")), (std::vector<uint32_t>{0xE001}));
  EXPECT_EQ(CharactersOf(subwords.Encode("abc cab")),
            (std::vector<uint32_t>{0xE001, 'c', ' ', 'c', 'a', 'b'}));
}

TEST(Subwords, GivesEveryTextBack) {
  const std::vector<std::string> texts = {
      "Open the file", "Ouvrir le fichier", "  two  spaces ", "", "éàü — “x”", "Open Open Opening"};
  for (const int merges : {0, 5, 100}) {
    const Subwords subwords = Subwords::Learn(texts, merges);
    for (const std::string& text : texts) {
      EXPECT_EQ(subwords.Decode(subwords.Encode(text)), text) << merges;
    }
    EXPECT_EQ(subwords.Decode(subwords.Encode("never seen ß")), "never seen ß");
  }
  EXPECT_EQ(Subwords::Learn(texts, 0).merges(), 0);
  EXPECT_LT(Subwords::Learn(texts, 100).merges(), 100);  // nothing more stands together twice
}

// A private character of the text must not be taken for a piece.
TEST(Subwords, PrivateCharactersAreNoPieces) {
  const Subwords subwords = Subwords::Learn({"ab ab"}, 1);
  EXPECT_EQ(subwords.Decode(subwords.Encode("\xEE\x80\x80")), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace pipelab
