// JSON wrapper: places of errors, limits, fields, steady text.
#include "tools/base/json.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Json, RoundTripIsSteady) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json j,
                               ParseJson(R"({"b": [1, 0.1, "x"], "a": null})", "t"));
  const std::string text = "{\n  \"a\": null,\n  \"b\": [\n    1,\n    0.1,\n    \"x\"\n  ]\n}\n";
  EXPECT_EQ(DumpJson(j), text);
  PIPELAB_ASSERT_OK_AND_ASSIGN(nlohmann::json again, ParseJson(text, "t"));
  EXPECT_EQ(again, j);
}

TEST(Json, RefusesAKeyThatComesTwice) {
  EXPECT_THAT(
      ParseJson(R"([{"a": 1}, {"a": {"a": 2}, "b": 3, "a": 4}])", "f.json"),
      StatusIs(absl::StatusCode::kInvalidArgument, "f.json: \"a\" comes twice in one object"));
  EXPECT_THAT(ParseJson(R"([{"a": {"a": 2}}, {"a": 1}])", "f.json"), IsOk());
}

TEST(Json, DumpNeverThrows) {
  EXPECT_EQ(DumpJson("a\xff"), "\"a\xEF\xBF\xBD\"\n");
  EXPECT_EQ(DumpJson(std::nan("")), "null\n");
}

TEST(Json, ErrorsSayLineAndColumn) {
  const auto bad = [](absl::string_view text, absl::string_view place) {
    const auto j = ParseJson(text, "f.json");
    EXPECT_THAT(j, StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(std::string(place))));
    EXPECT_THAT(std::string(j.status().message()), Not(HasSubstr("\n")));
  };
  bad("{\n  \"a\": 1,\n  x\n}", "f.json:3:3: not JSON: ");
  bad("", "f.json:1:1: not JSON: ");
  bad("[1, 2", "f.json:1:6: not JSON: ");
  bad("[1] 2", "f.json:1:5: not JSON: ");
  bad("\"a\xff\"", "f.json:1:3: not JSON: ");
  bad("1e999", "f.json");
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](int n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_THAT(ParseJson(nested(200), "f"), IsOk());
  EXPECT_THAT(ParseJson(nested(201), "f"),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("f:1:201: ")));
  EXPECT_THAT(ParseJson("\"\\\"" + std::string(300, '[') + "\"", "f"), IsOk());  // inside a string
}

TEST(Json, ValuesAndBytesAreLimited) {
  JsonLimits limits;
  limits.values = 8;
  limits.bytes = 60;
  // Eight values: a list, an object, its list and five others; an empty list is one.
  EXPECT_THAT(ParseJson(R"([{"a": [1, 2]}, [ ], "[,,,,,,,,,{", 3])", "f", limits), IsOk());
  EXPECT_THAT(ParseJson("[1, 2,\n 3, 4, 5, 6, 7, {}]", "f", limits),
              StatusIs(absl::StatusCode::kInvalidArgument, "f:2:15: not JSON: more than 8 values"));
  EXPECT_THAT(ParseJson(std::string(61, ' ') + "1", "f", limits),
              StatusIs(absl::StatusCode::kInvalidArgument, "f:1:61: not JSON: more than 60 bytes"));
}

// Time that grows with the square of the values would take hours here.
TEST(Json, AMillionValues) {
  std::string list = "[", object = "{";
  for (int i = 0; i < 1000000; ++i) {
    list += i == 0 ? "{}" : i % 2 == 0 ? ",{\"a\":[]}" : ",[1]";
    object += absl::StrCat(i == 0 ? "" : ",", "\"", i, "\":{}");
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json values, ParseJson(list + "]", "f"));
  EXPECT_EQ(values.size(), 1000000);
  EXPECT_EQ(values[999998], nlohmann::json({{"a", nlohmann::json::array()}}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const nlohmann::json members, ParseJson(object + "}", "f"));
  EXPECT_EQ(members.size(), 1000000);
  EXPECT_TRUE(members.contains("999999"));
}

TEST(Json, FieldsByType) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      nlohmann::json j,
      ParseJson(R"({"i": 3, "d": 2.5, "s": "x", "b": true, "big": 18446744073709551615})", "f"));
  EXPECT_EQ(*JsonField<int64_t>(j, "i", "f"), 3);
  EXPECT_EQ(*JsonField<double>(j, "i", "f"), 3.0);
  EXPECT_EQ(*JsonField<double>(j, "d", "f"), 2.5);
  EXPECT_EQ(*JsonField<std::string>(j, "s", "f"), "x");
  EXPECT_EQ(*JsonField<bool>(j, "b", "f"), true);
  EXPECT_THAT(JsonField<int64_t>(j, "d", "f").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "f: field 'd': is 2.5; it must be a whole number"));
  EXPECT_FALSE(JsonField<int64_t>(j, "big", "f").ok());
  EXPECT_FALSE(JsonField<bool>(j, "i", "f").ok());
  EXPECT_THAT(JsonField<bool>(j, "none", "f").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'none': missing")));
  EXPECT_FALSE(JsonField<nlohmann::json>(nlohmann::json(3), "a", "f").ok());
}

}  // namespace
}  // namespace pipelab
