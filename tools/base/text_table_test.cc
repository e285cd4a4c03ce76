// Tables as literal pictures.
#include "tools/base/text_table.h"

#include "gtest/gtest.h"

namespace pipelab {
namespace {

TextTable Example() {
  TextTable t({{"scheme", "", ""}, {"step time", "ms", "measured"}, {"bubble", "%", "simulated"}});
  t.AddRow({"1f1b", "37.2", "27.3"});
  t.AddRow({"chimera|2", "1,234.5", "-"});
  return t;
}

TEST(TextTable, AlignsNumbersRight) {
  EXPECT_EQ(Example().ToText(),
            "scheme     step time     bubble\n"
            "                  ms          %\n"
            "            measured  simulated\n"
            "---------  ---------  ---------\n"
            "1f1b            37.2       27.3\n"
            "chimera|2    1,234.5          -\n");
}

TEST(TextTable, Markdown) {
  EXPECT_EQ(Example().ToMarkdown(),
            "| scheme | step time (ms) | bubble (%) |\n"
            "| --- | ---: | ---: |\n"
            "|  | *measured* | *simulated* |\n"
            "| 1f1b | 37.2 | 27.3 |\n"
            "| chimera\\|2 | 1,234.5 | - |\n");
}

TEST(TextTable, NoUnitsNoOriginsNoExtraRows) {
  TextTable t({{"a", "", ""}, {"b", "", ""}});
  t.AddRow({"\xC3\xA9\xC3\xA9\xC3\xA9", "x"});  // three characters, six bytes
  t.AddRow({"1", "12"});
  EXPECT_EQ(t.ToText(),
            "a    b\n"
            "---  --\n"
            "\xC3\xA9\xC3\xA9\xC3\xA9  x\n"
            "1    12\n");
  EXPECT_EQ(t.ToMarkdown(),
            "| a | b |\n| --- | --- |\n| \xC3\xA9\xC3\xA9\xC3\xA9 | x |\n| 1 | 12 |\n");
}

TEST(TextTable, WordsThatStartWithDigitsAreNotNumbers) {
  TextTable t({{"scheme", "", ""}, {"x", "", ""}});
  t.AddRow({"1f1b-interleaved", "2.5x"});
  t.AddRow({"gp", "11 ms"});
  EXPECT_EQ(t.ToText(),
            "scheme                x\n"
            "----------------  -----\n"
            "1f1b-interleaved   2.5x\n"
            "gp                11 ms\n");
}

TEST(TextTableDeathTest, RowOfWrongWidth) {
  TextTable t({{"a", "", ""}});
  EXPECT_DEATH(t.AddRow({"1", "2"}), "cells in a row");
}

}  // namespace
}  // namespace pipelab
