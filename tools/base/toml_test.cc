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

}  // namespace
}  // namespace pipelab
