#include "pipelines/schedules/formula.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

const FormulaValues kValues = {{'P', 4}, {'M', 10}, {'V', 2}, {'r', 3}};

double ValueOfFormula(const char* formula) {
  const absl::StatusOr<double> value = EvaluateFormula(formula, kValues);
  EXPECT_THAT(value, IsOk());
  return value.ok() ? *value : 0;
}

TEST(Formula, Evaluates) {
  EXPECT_EQ(ValueOfFormula("3 (M + P - 1)"), 39);
  EXPECT_EQ(ValueOfFormula("V M"), 20);
  EXPECT_EQ(ValueOfFormula("M-P-r"), 3);  // from the left
  EXPECT_EQ(ValueOfFormula("M / P / V"), 1.25);
  EXPECT_EQ(ValueOfFormula("2 M mod P * 3"), 0);  // (20 mod 4) 3
  EXPECT_EQ(ValueOfFormula("7 + M mod P"), 9);
  EXPECT_EQ(ValueOfFormula("-P + 2 (-1)"), -6);
  EXPECT_EQ(ValueOfFormula("floor(M/P) + min(P, M) + max(P, 2 V + 1)"), 2 + 4 + 5);
  EXPECT_EQ(ValueOfFormula("min(r, P - 1 - r)"), 0);
}

TEST(Formula, ComparisonsAreOneOrZero) {
  EXPECT_EQ(ValueOfFormula("M >= P"), 1);
  EXPECT_EQ(ValueOfFormula("M <= P"), 0);
  EXPECT_EQ(ValueOfFormula("P > 4"), 0);
  EXPECT_EQ(ValueOfFormula("r < P and M mod P == 2"), 1);
  EXPECT_EQ(ValueOfFormula("r < P and M mod P == 0"), 0);
  EXPECT_EQ(ValueOfFormula("5 + (M mod P > 0) (P - 1)"), 8);
}

TEST(Formula, ErrorsSayWhere) {
  const auto error = [](const std::string& formula) {
    return std::string(EvaluateFormula(formula, kValues).status().message());
  };
  EXPECT_EQ(error("M + "), "formula 'M + ', column 5: expected a number, a known variable or '('");
  EXPECT_EQ(error("M + Q"),
            "formula 'M + Q', column 5: expected a number, a known variable or '('");
  EXPECT_EQ(error("(M"), "formula '(M', column 3: expected ')'");
  EXPECT_EQ(error("min(M)"), "formula 'min(M)', column 6: expected ','");
  EXPECT_EQ(error("M )"), "formula 'M )', column 3: expected an operator");
  EXPECT_THAT(error(std::string(1000, '(')), testing::HasSubstr("nested too deep"));
  EXPECT_THAT(error(std::string(1000, '-') + "1"), testing::HasSubstr("nested too deep"));
}

}  // namespace
}  // namespace pipelab
