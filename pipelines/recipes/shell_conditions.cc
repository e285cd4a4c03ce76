#include "pipelines/recipes/shell_conditions.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "pipelines/recipes/shell_expand.h"

namespace pipelab {
namespace {

using Verdict = absl::optional<bool>;

constexpr int kMostNestedConditions = 32;
constexpr absl::string_view kComparisons[] = {
    "=", "==", "!=", "=~", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-ef", "-nt", "-ot"};

bool IsComparison(absl::string_view word) {
  return std::find(std::begin(kComparisons), std::end(kComparisons), word) !=
         std::end(kComparisons);
}

Verdict Compare(absl::string_view op, int64_t a, int64_t b) {
  if (op == "-eq") return a == b;
  if (op == "-ne") return a != b;
  if (op == "-lt") return a < b;
  if (op == "-le") return a <= b;
  if (op == "-gt") return a > b;
  if (op == "-ge") return a >= b;
  return absl::nullopt;
}

// Looks for an expression, which may have no special characters but ^ and $.
Verdict FindExpression(absl::string_view text, absl::string_view expression) {
  const bool begins = absl::ConsumePrefix(&expression, "^");
  const bool ends = absl::ConsumeSuffix(&expression, "$");
  if (expression.find_first_of(".*+?[](){}|\\^$") != absl::string_view::npos) return absl::nullopt;
  if (begins && ends) return text == expression;
  if (begins) return absl::StartsWith(text, expression);
  return ends ? absl::EndsWith(text, expression) : absl::StrContains(text, expression);
}

class ConditionReader {
 public:
  ConditionReader(const std::vector<ConditionWord>& words, ShellDoubt* doubt)
      : words_(words), doubt_(*doubt) {}

  Verdict Read() {
    const Verdict verdict = words_.empty() ? false : Or(0);
    return at_ == words_.size() ? verdict : false;
  }

 private:
  absl::string_view At(size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? absl::string_view(words_[at_ + ahead].value) : "";
  }
  bool Take(absl::string_view a, absl::string_view b = "") {
    const bool found = at_ < words_.size() && !At().empty() && (At() == a || At() == b);
    at_ += found;
    return found;
  }

  Verdict Or(int depth) {
    Verdict left = And(depth);
    while (Take("||", "-o")) {
      const Verdict right = And(depth);
      left = left == true || right == true     ? Verdict(true)
             : left == false && right == false ? Verdict(false)
                                               : absl::nullopt;
    }
    return left;
  }

  Verdict And(int depth) {
    Verdict left = Not(depth);
    while (Take("&&", "-a")) {
      const Verdict right = Not(depth);
      left = left == false || right == false ? Verdict(false)
             : left == true && right == true ? Verdict(true)
                                             : absl::nullopt;
    }
    return left;
  }

  Verdict Not(int depth) {
    if (depth > kMostNestedConditions) return absl::nullopt;
    if (!IsComparison(At(1)) && Take("!")) {
      const Verdict verdict = Not(depth + 1);
      return verdict.has_value() ? Verdict(!*verdict) : absl::nullopt;
    }
    if (!IsComparison(At(1)) && Take("(")) {
      const Verdict verdict = Or(depth + 1);
      return Take(")") ? verdict : Verdict(false);
    }
    return Primary();
  }

  Verdict Primary() {
    if (at_ + 2 < words_.size() && IsComparison(At(1))) {
      at_ += 3;
      return Binary(words_[at_ - 3].value, words_[at_ - 2].value, words_[at_ - 1]);
    }
    const bool unary = At().size() == 2 && At()[0] == '-' && at_ + 1 < words_.size();
    const char kind = unary ? At()[1] : 'n';
    at_ += unary;
    if (at_ >= words_.size()) return false;
    const std::string& value = words_[at_++].value;
    if (kind != 'z' && kind != 'n') return Unknown({&value});  // of files and the like
    if (ShownValue(value, "").empty() && !IsKnown(value)) return Unknown({&value});
    return value.empty() == (kind == 'z');
  }

  Verdict Binary(const std::string& left, absl::string_view op, const ConditionWord& word) {
    const std::string& right = word.value;
    if (!IsKnown(left) || !IsKnown(right)) {
      return Unknown({&left, &right}, IsKnown(left) ? left : right);
    }
    if (op == "=" || op == "==") return MatchesShellPattern(left, word.pattern);
    if (op == "!=") return !MatchesShellPattern(left, word.pattern);
    if (op == "<") return left < right;
    if (op == ">") return left > right;
    int64_t a = 0, b = 0;
    const bool numbers = absl::SimpleAtoi(left, &a) && absl::SimpleAtoi(right, &b);
    const Verdict verdict = op == "=~" ? FindExpression(left, right)
                            : numbers  ? Compare(op, a, b)
                                       : absl::nullopt;
    return verdict.has_value() ? verdict : Unknown({});
  }

  Verdict Unknown(std::initializer_list<const std::string*> values,
                  absl::string_view example = "") {
    for (const std::string* value : values) {
      for (const UnknownPart& part : UnknownParts(*value)) doubt_.names.push_back(part.name);
    }
    if (IsKnown(example) && doubt_.example.empty()) doubt_.example = std::string(example);
    return absl::nullopt;
  }

  const std::vector<ConditionWord>& words_;
  ShellDoubt& doubt_;
  size_t at_ = 0;
};

}  // namespace

absl::optional<bool> EvaluateShellCondition(const std::vector<ConditionWord>& words,
                                            ShellDoubt* doubt) {
  const Verdict verdict = ConditionReader(words, doubt).Read();
  if (verdict.has_value()) return verdict;
  std::vector<ConditionWord> empty = words;
  for (ConditionWord& word : empty) {
    word = {ShownValue(word.value, ""), ShownValue(word.pattern, "")};
  }
  ShellDoubt ignored;
  doubt->likely = ConditionReader(empty, &ignored).Read().value_or(false);
  return verdict;
}

}  // namespace pipelab
