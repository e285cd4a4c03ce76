#include "pipelines/recipes/shell_arithmetic.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "pipelines/recipes/shell_values.h"
#include "pipelines/recipes/shell_words.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostParentheses = 64;
constexpr int kMostNestedNames = 3;  // a variable that has a sum of others
constexpr size_t kMostNestedSum = 64;
constexpr int kUnary = 13;

// The longer ones first; a higher level binds closer.
struct SumOperator {
  absl::string_view text;
  int level;
};
constexpr SumOperator kSumOperators[] = {
    {"**", 12}, {"<<", 9}, {">>", 9}, {"<=", 8}, {">=", 8}, {"==", 7}, {"!=", 7},
    {"&&", 3},  {"||", 2}, {"*", 11}, {"/", 11}, {"%", 11}, {"+", 10}, {"-", 10},
    {"<", 8},   {">", 8},  {"&", 6},  {"^", 5},  {"|", 4},  {"?", 1},
};
constexpr absl::string_view kAssignments[] = {"=", "+=", "-=", "*=", "/=", "%="};

// Numbers have 64 bits, and what is more is lost.
int64_t Wrapped(uint64_t value) { return static_cast<int64_t>(value); }

class SumReader {
 public:
  SumReader(absl::string_view text, const GetShellValue& get, const SetShellValue& set)
      : text_(text), rest_(text), get_(get), set_(set) {}

  absl::StatusOr<std::string> Read() {
    Skip();
    int64_t value = 0;
    while (!rest_.empty()) {
      PIPELAB_ASSIGN_OR_RETURN(value, Binary(0, 0));
      if (!rest_.empty() && !absl::ConsumePrefix(&rest_, ",")) return Error();
      Skip();
    }
    return unknown_.empty() ? absl::StrCat(value) : unknown_;
  }

 private:
  absl::Status Error(absl::string_view why = "is no sum of whole numbers") const {
    return absl::InvalidArgumentError(absl::StrCat("'", ShownValue(text_), "' ", why));
  }

  void Skip() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  bool Take(absl::string_view token) {
    if (!absl::ConsumePrefix(&rest_, token)) return false;
    Skip();
    return true;
  }

  const SumOperator* Next() const {
    for (const SumOperator& op : kSumOperators) {
      if (absl::StartsWith(rest_, op.text)) return &op;
    }
    return nullptr;
  }

  // What binds at least as closely as `level`.
  absl::StatusOr<int64_t> Binary(int level, int depth) {
    if (depth > kMostParentheses) return Error("is nested too deeply");
    PIPELAB_ASSIGN_OR_RETURN(int64_t left, Unary(depth));
    while (true) {
      const SumOperator* op = Next();
      if (op == nullptr || op->level < level) return left;
      Take(op->text);
      if (op->text == "?") {
        PIPELAB_ASSIGN_OR_RETURN(left, Chosen(left, depth));
        continue;
      }
      const bool skips = (op->text == "&&" && left == 0) || (op->text == "||" && left != 0);
      skipped_ += skips;
      const int right_level = op->text == "**" ? op->level : op->level + 1;
      const auto right = Binary(right_level, depth + 1);
      skipped_ -= skips;
      if (!right.ok()) return right;
      PIPELAB_ASSIGN_OR_RETURN(left, Apply(op->text, left, *right));
    }
  }

  absl::StatusOr<int64_t> Chosen(int64_t condition, int depth) {
    int64_t values[2] = {0, 0};
    for (int i = 0; i < 2; ++i) {
      if (i == 1 && !Take(":")) return Error();
      const bool skips = (condition != 0) == (i == 1);
      skipped_ += skips;
      const auto value = Binary(1, depth + 1);
      skipped_ -= skips;
      if (!value.ok()) return value;
      values[i] = *value;
    }
    return values[condition == 0 ? 1 : 0];
  }

  absl::StatusOr<int64_t> Apply(absl::string_view op, int64_t a, int64_t b) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (op == "+") return Wrapped(x + y);
    if (op == "-") return Wrapped(x - y);
    if (op == "*") return Wrapped(x * y);
    if (op == "**") return Power(x, b);
    if (op == "<<") return Wrapped(x << (y & 63));
    if (op == ">>") return a >> (y & 63);
    if (op == "<") return a < b;
    if (op == "<=") return a <= b;
    if (op == ">") return a > b;
    if (op == ">=") return a >= b;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "&&") return a != 0 && b != 0;
    if (op == "||") return a != 0 || b != 0;
    if (op == "&") return Wrapped(x & y);
    if (op == "|") return Wrapped(x | y);
    if (op == "^") return Wrapped(x ^ y);
    // A part that is skipped or not known may be 0.
    if (b == 0 && (skipped_ > 0 || !unknown_.empty())) return 0;
    if (b == 0) return Error("divides by 0");
    if (b == -1) return op == "/" ? Wrapped(0 - x) : 0;
    return op == "/" ? a / b : a % b;
  }

  absl::StatusOr<int64_t> Power(uint64_t base, int64_t exponent) {
    if (exponent < 0)
      return skipped_ > 0 ? absl::StatusOr<int64_t>(0) : Error("has a power below 0");
    uint64_t power = 1;
    for (; exponent > 0; exponent >>= 1, base *= base) {
      if ((exponent & 1) != 0) power *= base;
    }
    return Wrapped(power);
  }

  absl::StatusOr<int64_t> Unary(int depth) {
    if (depth > kMostParentheses) return Error("is nested too deeply");
    for (const absl::string_view step : {"++", "--"}) {
      if (absl::StartsWith(rest_, step) && ShellNameLength(rest_.substr(2)) > 0) {
        Take(step);
        const std::string name = TakeName();
        PIPELAB_ASSIGN_OR_RETURN(const int64_t value, ValueOf(name));
        return Set(name, Wrapped(static_cast<uint64_t>(value) + (step == "++" ? 1 : -1)));
      }
    }
    for (const char c : {'-', '+', '!', '~'}) {
      if (!Take(absl::string_view(&c, 1))) continue;
      PIPELAB_ASSIGN_OR_RETURN(const int64_t value, Binary(kUnary, depth + 1));
      return c == '-'   ? Wrapped(0 - static_cast<uint64_t>(value))
             : c == '!' ? int64_t{value == 0}
             : c == '~' ? ~value
                        : value;
    }
    if (Take("(")) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t value, Binary(0, depth + 1));
      return Take(")") ? absl::StatusOr<int64_t>(value) : Error();
    }
    if (rest_.empty()) return Error();
    if (rest_.front() == kUnknownBegin) {
      const size_t end = rest_.find(kUnknownEnd) + 1;
      NoteUnknown(rest_.substr(0, end));
      rest_.remove_prefix(end);
      // Digits beside it belong to the same number.
      rest_.remove_prefix(std::min(rest_.find_first_not_of("0123456789"), rest_.size()));
      Skip();
      return 0;
    }
    return ShellNameLength(rest_) > 0 ? Variable(depth) : Number();
  }

  void NoteUnknown(absl::string_view value) {
    if (skipped_ == 0 && unknown_.empty()) unknown_ = std::string(value);
  }

  std::string TakeName() {
    size_t length = ShellNameLength(rest_);
    if (absl::StartsWith(rest_.substr(length), "[")) {
      const size_t end = EndOfShellSpan(rest_, length + 1, ']');
      length = end == absl::string_view::npos ? length : end;
    }
    std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    Skip();
    return name;
  }

  absl::StatusOr<int64_t> ValueOf(const std::string& name) {
    if (skipped_ > 0) return 0;
    PIPELAB_ASSIGN_OR_RETURN(const std::string value, get_(name));
    if (!IsKnown(value)) NoteUnknown(value);
    if (value.empty() || !IsKnown(value)) return 0;
    int64_t number = 0;
    if (absl::SimpleAtoi(value, &number)) return number;
    if (depth_ < kMostNestedNames && value.size() <= kMostNestedSum) {
      SumReader nested(value, get_, set_);
      nested.depth_ = depth_ + 1;
      const auto sum = nested.Read();
      if (sum.ok() && !IsKnown(*sum)) NoteUnknown(*sum);
      if (sum.ok() && absl::SimpleAtoi(*sum, &number)) return number;
      if (sum.ok()) return 0;
    }
    return Error(absl::StrCat("needs a whole number: ", name, " is '", value.substr(0, 40), "'"));
  }

  absl::StatusOr<int64_t> Set(const std::string& name, int64_t value) {
    if (skipped_ == 0) {
      PIPELAB_RETURN_IF_ERROR(set_(name, unknown_.empty() ? absl::StrCat(value) : unknown_));
    }
    return value;
  }

  absl::StatusOr<int64_t> Variable(int depth) {
    const std::string name = TakeName();
    for (const absl::string_view op : kAssignments) {
      if (!absl::StartsWith(rest_, op) || absl::StartsWith(rest_, "==")) continue;
      Take(op);
      PIPELAB_ASSIGN_OR_RETURN(int64_t value, Binary(1, depth + 1));
      if (op.size() == 2) {
        PIPELAB_ASSIGN_OR_RETURN(const int64_t before, ValueOf(name));
        PIPELAB_ASSIGN_OR_RETURN(value, Apply(op.substr(0, 1), before, value));
      }
      return Set(name, value);
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t value, ValueOf(name));
    for (const absl::string_view step : {"++", "--"}) {
      if (!Take(step)) continue;
      const uint64_t change = step == "++" ? 1 : -1;
      PIPELAB_RETURN_IF_ERROR(Set(name, Wrapped(static_cast<uint64_t>(value) + change)).status());
      break;
    }
    return value;
  }

  absl::StatusOr<int64_t> Number() {
    size_t length = 0;
    while (
        length < rest_.size() &&
        (absl::ascii_isalnum(static_cast<unsigned char>(rest_[length])) || rest_[length] == '#')) {
      ++length;
    }
    absl::string_view digits = rest_.substr(0, length);
    rest_.remove_prefix(length);
    Skip();
    int base = 10;
    const size_t mark = digits.find('#');
    if (mark != absl::string_view::npos) {
      if (!absl::SimpleAtoi(digits.substr(0, mark), &base) || base < 2 || base > 36) return Error();
      digits.remove_prefix(mark + 1);
    } else if (absl::ConsumePrefix(&digits, "0x") || absl::ConsumePrefix(&digits, "0X")) {
      base = 16;
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
    }
    uint64_t value = 0;
    if (digits.empty()) return Error();
    for (const char c : digits) {
      const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
      const int digit = lower >= 'a' ? lower - 'a' + 10 : lower - '0';
      if (digit < 0 || digit >= base) return Error();
      value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit);
    }
    return Wrapped(value);
  }

  const absl::string_view text_;
  absl::string_view rest_;
  const GetShellValue& get_;
  const SetShellValue& set_;
  int depth_ = 0;    // of sums in variables
  int skipped_ = 0;  // parts around the present one that do not count
  std::string unknown_;
};

}  // namespace

absl::StatusOr<std::string> EvaluateShellSum(absl::string_view text, const GetShellValue& get,
                                             const SetShellValue& set) {
  return SumReader(text, get, set).Read();
}

}  // namespace pipelab
