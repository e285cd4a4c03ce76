#include "tools/base/csv.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvTest, QuotesCommasAndLineBreaks) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const CsvTable t,
      CsvTable::Parse("a,b\r\n1,\"x, \"\"y\"\"\nz\"\n\n,\n\"\",2", "f.csv", {"b", "a"}));
  EXPECT_EQ(t.Column("b"), 1);
  EXPECT_THAT(t.rows(), ElementsAre(ElementsAre("1", "x, \"y\"\nz"), ElementsAre("", ""),
                                    ElementsAre("", "2")));
}

TEST(CsvTest, NamesTheMistake) {
  const auto message = [](const std::string& text) {
    return std::string(CsvTable::Parse(text, "f.csv", {"a"}).status().message());
  };
  EXPECT_EQ(message(""), "f.csv: is empty");
  EXPECT_EQ(message("b,c\n"), "f.csv:1: the header must have a column 'a'");
  EXPECT_EQ(message("a,b\n\"1\n\",2\n3\n"), "f.csv:4: 1 fields under 2 titles");
  EXPECT_THAT(message("a\nx\n\"y\n"), HasSubstr("f.csv:3: a quote"));
  EXPECT_EQ(message("a\n"), "");
}

}  // namespace
}  // namespace pipelab
