#include "tools/base/toml.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(ParseToml, IsTheSameAsJson) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const json root, ParseToml(R"(
# a comment
title = "run \"one\""
[training]
seq_len = 8_192
max_norm = 1.0
compile = true
limit = inf
begun = 2024-05-01
parts = [["a", "b"], []]
[model.more]
name = 'llama3'
)",
                                                          "f"));
  EXPECT_EQ(root, json::parse(R"({"title": "run \"one\"",
      "training": {"seq_len": 8192, "max_norm": 1.0, "compile": true, "limit": null,
                   "begun": "2024-05-01", "parts": [["a", "b"], []]},
      "model": {"more": {"name": "llama3"}}})"));
  EXPECT_EQ(*ParseToml("", "f"), json::object());
}

TEST(ParseToml, SaysWhereItIsNone) {
  EXPECT_THAT(ParseToml("a = 1\nb = = 2\n", "--toml=f"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--toml=f:2:5: not TOML: ")));
  EXPECT_THAT(ParseToml("a = 1\na = 2\n", "f"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f:2:")));
  EXPECT_THAT(ParseToml("[=]", "f"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("saw '='")));
  EXPECT_THAT(ParseToml("a = " + std::string(100000, '['), "f"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not TOML")));
}

std::string Parts(int parts) {
  std::string key = "a";
  for (int i = 1; i < parts; ++i) key += ".a";
  return key;
}

// Each part of a key nests a table, which no stack is deep enough for.
TEST(ParseToml, BoundsThePartsOfKeys) {
  EXPECT_THAT(ParseToml(Parts(64) + " = 1\n", "f"), IsOk());
  for (const int parts : {65, 20'000, 500'000}) {
    for (const std::string& text : {Parts(parts) + " = 1", "[" + Parts(parts) + "]",
                                    "a = {" + Parts(parts) + " = 1}", "[[" + Parts(parts) + "]]"}) {
      EXPECT_THAT(ParseToml("# one\nb = 'x'\n" + text, "f"),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           "f:3: not TOML: a key of more than 64 parts"));
    }
  }
}

TEST(ParseToml, BoundsItsText) {
  EXPECT_THAT(ParseToml(std::string(1 << 20, '\n'), "f"), IsOk());
  EXPECT_THAT(ParseToml(std::string((1 << 20) + 1, '\n'), "f"),
              StatusIs(absl::StatusCode::kInvalidArgument, "f: is longer than 1 MiB"));
}

TEST(ParseToml, DotsElsewhereAreNoParts) {
  const std::string dots(200, '.');
  for (const std::string& text :
       {"a = \"" + dots + "\"", "a = '" + dots + "'", "a = \"\"\"\n" + dots + "\n\"\"\"",
        "a = '''\n" + dots + "'''", "# " + dots, "a = 1 # " + dots, "\"" + dots + "\" = 1",
        "a = \"\\\"" + dots + "\"", "a = [" + std::string(99, ' ') + "1.5, 2.5]"}) {
    EXPECT_THAT(ParseToml(text, "f"), IsOk()) << text;
  }
}

}  // namespace
}  // namespace pipelab
