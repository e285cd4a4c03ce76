#include "pipelines/schedules/formula.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

// Recursive descent. After an error every part returns 0 and the first error stays.
class Evaluation {
 public:
  Evaluation(absl::string_view text, const FormulaValues& values) : text_(text), values_(values) {}

  absl::StatusOr<double> Run() {
    const double value = Conjunction();
    if (at_ < text_.size()) Fail("expected an operator");
    if (!error_.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("formula '", text_, "', column ", error_at_ + 1, ": ", error_));
    }
    return value;
  }

 private:
  static constexpr int kMaxDepth = 50;

  double Conjunction() {
    double value = Comparison();
    while (Take("and")) {
      const double right = Comparison();
      value = value != 0 && right != 0 ? 1 : 0;
    }
    return value;
  }

  double Comparison() {
    const double left = Sum();
    if (Take("==")) return left == Sum() ? 1 : 0;
    if (Take(">=")) return left >= Sum() ? 1 : 0;
    if (Take("<=")) return left <= Sum() ? 1 : 0;
    if (Take(">")) return left > Sum() ? 1 : 0;
    if (Take("<")) return left < Sum() ? 1 : 0;
    return left;
  }

  double Sum() {
    double value = Product();
    while (true) {
      if (Take("+")) {
        value += Product();
      } else if (Take("-")) {
        value -= Product();
      } else {
        return value;
      }
    }
  }

  double Product() {
    double value = Factor();
    while (true) {
      if (Take("*")) {
        value *= Factor();
      } else if (Take("/")) {
        value /= Factor();
      } else if (Take("mod")) {
        value = std::fmod(value, Factor());
      } else if (BeginsFactor()) {
        value *= Factor();
      } else {
        return value;
      }
    }
  }

  double Factor() {
    SkipBlanks();
    const size_t begin = at_;
    if (++depth_ > kMaxDepth) return Fail("nested too deep");
    double value = 0;
    if (Take("-")) {
      value = -Factor();
    } else if (Take("(")) {
      value = Conjunction();
      Close();
    } else if (Take("floor(")) {
      value = std::floor(Conjunction());
      Close();
    } else if (Take("min(")) {
      value = Conjunction();
      value = std::min(value, SecondArgument());
    } else if (Take("max(")) {
      value = Conjunction();
      value = std::max(value, SecondArgument());
    } else if (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) {
      while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) ++at_;
      if (!absl::SimpleAtod(text_.substr(begin, at_ - begin), &value)) Fail("not a number");
    } else if (at_ < text_.size() && values_.count(text_[at_]) > 0) {
      value = values_.at(text_[at_++]);
    } else {
      Fail("expected a number, a known variable or '('");
    }
    --depth_;
    return value;
  }

  double SecondArgument() {
    if (!Take(",")) return Fail("expected ','");
    const double value = Conjunction();
    Close();
    return value;
  }

  void Close() {
    if (!Take(")")) Fail("expected ')'");
  }

  bool BeginsFactor() {
    SkipBlanks();
    if (at_ == text_.size()) return false;
    const absl::string_view rest = text_.substr(at_);
    return rest[0] == '(' || (absl::ascii_isalnum(rest[0]) && !absl::StartsWith(rest, "and"));
  }

  bool Take(absl::string_view token) {
    SkipBlanks();
    if (!absl::StartsWith(text_.substr(at_), token)) return false;
    at_ += token.size();
    return true;
  }

  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  double Fail(absl::string_view reason) {
    if (error_.empty()) {
      error_ = std::string(reason);
      error_at_ = at_;
    }
    at_ = text_.size();
    return 0;
  }

  const absl::string_view text_;
  const FormulaValues& values_;
  size_t at_ = 0, error_at_ = 0;
  int depth_ = 0;
  std::string error_;
};

}  // namespace

absl::StatusOr<double> EvaluateFormula(absl::string_view formula, const FormulaValues& values) {
  return Evaluation(formula, values).Run();
}

}  // namespace pipelab
