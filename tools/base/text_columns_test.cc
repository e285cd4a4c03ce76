// Tables as literal pictures.
#include "tools/base/text_columns.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

TEST(TextColumns, AlignsUnderARule) {
  EXPECT_EQ(AlignColumns({{"scheme", "step time", "bubble"},
                          {"", "ms", "%"},
                          {"1f1b", "37.2", "27.3"},
                          {"chimera|2", "1,234.5", "-"}},
                         2, {false, true, true}),
            "scheme     step time  bubble\n"
            "                  ms       %\n"
            "---------  ---------  ------\n"
            "1f1b            37.2    27.3\n"
            "chimera|2    1,234.5       -\n");
}

TEST(TextColumns, CountsCharactersAndLeavesNoBlanksAtTheEnd) {
  EXPECT_EQ(
      AlignColumns({{"a", "b"}, {"\xC3\xA9\xC3\xA9\xC3\xA9", "x"}, {"1", "12"}}, 1, {false, false}),
      "a    b\n"
      "---  --\n"
      "\xC3\xA9\xC3\xA9\xC3\xA9  x\n"
      "1    12\n");
}

TEST(TextColumns, HeaderAlone) { EXPECT_EQ(AlignColumns({{"a"}}, 1, {true}), "a\n-\n"); }

TEST(TextColumnsDeathTest, LineOfWrongLength) {
  EXPECT_DEATH(AlignColumns({{"1", "2"}}, 0, {true}), "cells in a line");
}

}  // namespace
}  // namespace pipelab
