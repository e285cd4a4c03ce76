#include "pipelines/recipes/shell_arithmetic.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/recipes/shell_values.h"

namespace pipelab {
namespace {

// The values are bash's.
TEST(EvaluateShellSum, IsBashs) {
  std::map<std::string, std::string> variables = {
      {"A", "7"}, {"E", ""}, {"S", "A + 1"}, {"F", "0.5"}, {"U", UnknownValue({"U", 3, "$(x)"})}};
  const auto get = [&](absl::string_view name) { return variables[std::string(name)]; };
  const auto set = [&](absl::string_view name, const std::string& value) {
    variables[std::string(name)] = value;
    return absl::OkStatus();
  };
  const auto sum = [&](absl::string_view text) {
    const auto value = EvaluateShellSum(text, get, set);
    return value.ok() ? ShownValue(*value) : std::string(value.status().message());
  };
  EXPECT_EQ(sum("1 + 2*3 - 8/3%2"), "7");
  EXPECT_EQ(sum("(1+2) * -A"), "-21");
  EXPECT_EQ(sum("-2**2 + 2**3**2"), "516");
  EXPECT_EQ(sum("A > 3 ? A > 9 ? 1 : 2 : 3"), "2");
  EXPECT_EQ(sum("A == 7 && !E || 1/0"), "1");
  EXPECT_EQ(sum("0 && 1/0"), "0");
  EXPECT_EQ(sum("0x10 + 010 + 2#101 + (1<<4 | 1) + ~0"), "45");
  EXPECT_EQ(sum("A += 2, A++ + ++A"), "20");
  EXPECT_EQ(sum("S * 2"), "24");
  EXPECT_EQ(sum(""), "0");
  EXPECT_EQ(sum("9223372036854775807 + 1"), "-9223372036854775808");
  EXPECT_EQ(sum("(0 - 9223372036854775807 - 1) / -1"), "-9223372036854775808");
  EXPECT_EQ(sum("U * 2"), "$(x)");
  EXPECT_EQ(sum("1 ? 5 : U"), "5");
  EXPECT_EQ(sum("5 / (U - U)"), "$(x)");
  EXPECT_EQ(sum("A / 0"), "'A / 0' divides by 0");
  EXPECT_EQ(sum("0.5 * 2"), "'0.5 * 2' is no sum of whole numbers");
  EXPECT_EQ(sum("F * 2"), "'F * 2' needs a whole number: F is '0.5'");
  EXPECT_EQ(sum("09"), "'09' is no sum of whole numbers");
  EXPECT_EQ(sum("2 ** -1"), "'2 ** -1' has a power below 0");
  EXPECT_THAT(sum(std::string(999, '(')), testing::HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace pipelab
