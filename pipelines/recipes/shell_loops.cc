#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pipelines/recipes/shell_runner.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kMostChoices = 256;

}  // namespace

absl::StatusOr<int> ScriptRunner::Choose(const ShellDoubt& doubt, int alternatives) {
  const std::string& key = doubt.key.empty() ? doubt.text : doubt.key;
  const auto [it, first] = decided_.try_emplace(absl::StrCat(alternatives, " ", key), 0);
  if (!first) return it->second;
  const size_t index = run_.choices.size();
  if (index >= kMostChoices) return expander_.Error("too many conditions cannot be known");
  run_.choices.push_back({doubt, alternatives});
  if (index < path_.size()) it->second = std::min(path_[index], alternatives - 1);
  return it->second;
}

absl::StatusOr<bool> ScriptRunner::Decide(const ShellDoubt& doubt) {
  PIPELAB_ASSIGN_OR_RETURN(const int alternative, Choose(doubt, 2));
  return (alternative == 0) == doubt.likely;
}

// Makes the last command's outcome known.
absl::StatusOr<bool> ScriptRunner::Holds() {
  if (!outcome_.holds.has_value()) {
    PIPELAB_ASSIGN_OR_RETURN(const bool holds, Decide(outcome_.doubt));
    SetOutcome(holds != outcome_.inverted);
  }
  return *outcome_.holds;
}

void ScriptRunner::SetOutcome(bool holds) {
  outcome_ = Outcome();
  outcome_.holds = holds;
}

void ScriptRunner::SetDoubt(ShellDoubt doubt, Range range) {
  doubt.line = Token(range.begin).line;
  doubt.text = Written(range);
  outcome_ = Outcome();
  outcome_.holds = absl::nullopt;
  outcome_.doubt = std::move(doubt);
}

// After a turn: whether there is another.
bool ScriptRunner::Continues() {
  if ((flow_ != Flow::kBreak && flow_ != Flow::kContinue) || --loops_left_ > 0) {
    return flow_ == Flow::kGo;
  }
  const bool continues = flow_ == Flow::kContinue;
  flow_ = Flow::kGo;
  return continues;
}

absl::Status ScriptRunner::TooManyTurns() {
  return expander_.Error("the loop does not end within ", kMostShellTurns, " turns");
}

absl::Status ScriptRunner::While(bool live) {
  const size_t begin = place_.at++;
  const bool until = Token(begin).text == "until";
  const size_t condition = place_.at;
  PIPELAB_RETURN_IF_ERROR(List(false));
  PIPELAB_RETURN_IF_ERROR(Expect("do"));
  PIPELAB_ASSIGN_OR_RETURN(const Range body, SkipList());
  PIPELAB_RETURN_IF_ERROR(Expect("done"));
  if (!live) return absl::OkStatus();
  for (int turn = 0;; ++turn) {
    PIPELAB_RETURN_IF_ERROR(RunAt(condition));
    if (flow_ != Flow::kGo) return absl::OkStatus();
    expander_.set_line(Token(begin).line);
    if (turn == kMostShellTurns) return TooManyTurns();
    if (!outcome_.holds.has_value()) return DoubtfulLoop(body, Token(begin).line);
    if (*outcome_.holds == until) break;
    PIPELAB_RETURN_IF_ERROR(expander_.Charge(state_.bytes()));
    const ShellState before = state_;
    PIPELAB_RETURN_IF_ERROR(RunAt(body.begin));
    // A turn that changes nothing would be followed by others for ever.
    const bool changes =
        state_.variables != before.variables || state_.arguments != before.arguments;
    if (!Continues() || !changes) break;
  }
  SetOutcome(true);
  return absl::OkStatus();
}

// Its number of turns is not known, and so is what it changes. Without arguments none is read.
absl::Status ScriptRunner::DoubtfulLoop(Range body, int line) {
  const std::vector<std::string> names = outcome_.doubt.names;
  SetOutcome(true);
  const bool of_arguments =
      !names.empty() && std::all_of(names.begin(), names.end(), [](absl::string_view name) {
        return !name.empty() && name.find_first_not_of("#0123456789") == absl::string_view::npos;
      });
  if (of_arguments || IsIdleRange(body)) return absl::OkStatus();
  const size_t commands = run_.commands.size();
  for (int turn = 0; turn < 2; ++turn) {  // the second one with what the first one changes
    run_.commands.resize(commands);
    PIPELAB_RETURN_IF_ERROR(expander_.Charge(state_.bytes()));
    const auto before = state_.variables;
    PIPELAB_RETURN_IF_ERROR(RunAt(body.begin));
    if (flow_ != Flow::kReturn) flow_ = Flow::kGo;
    for (auto& [name, variable] : state_.variables) {
      const auto found = before.find(name);
      if (found != before.end() && found->second == variable) continue;
      variable.elements = {
          {"0", UnknownValue({name, line, absl::StrCat("$", name), variable.elements.size() > 1})}};
    }
  }
  return absl::OkStatus();
}

absl::Status ScriptRunner::For(bool live) {
  const size_t begin = place_.at++;
  if (AtEnd()) return NotUnderstood();
  const absl::string_view name = Token(place_.at++).text;
  std::vector<absl::string_view> raws = {"\"$@\""};
  SkipLines();
  if (TakeWord("in")) {
    raws.clear();
    while (!AtEnd() && Token().is_word) raws.push_back(Token(place_.at++).text);
    SkipLines();
  }
  PIPELAB_RETURN_IF_ERROR(Expect("do"));
  PIPELAB_ASSIGN_OR_RETURN(const Range body, SkipList());
  PIPELAB_RETURN_IF_ERROR(Expect("done"));
  if (!live) return absl::OkStatus();
  expander_.set_line(Token(begin).line);
  if (absl::StartsWith(name, "((")) return CountingLoop(name, body);
  if (!IsShellName(name)) return expander_.Error("'", name, "' is no variable");
  SetOutcome(true);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> values, Expanded(raws));
  if (values.size() > kMostShellTurns) return TooManyTurns();
  for (const std::string& value : values) {
    PIPELAB_RETURN_IF_ERROR(expander_.AssignValue(name, "0", value));
    if (!IsKnown(value)) {
      PIPELAB_RETURN_IF_ERROR(DoubtfulLoop(body, Token(begin).line));
      continue;
    }
    PIPELAB_RETURN_IF_ERROR(RunAt(body.begin));
    if (!Continues()) break;
  }
  return absl::OkStatus();
}

// for ((i = 0; i < 4; i++))
absl::Status ScriptRunner::CountingLoop(absl::string_view sums, Range body) {
  const std::vector<absl::string_view> parts = absl::StrSplit(sums.substr(2, sums.size() - 4), ';');
  SetOutcome(true);
  if (parts.size() != 3) return expander_.Error("'", sums, "' is not understood here");
  PIPELAB_RETURN_IF_ERROR(expander_.Sum(parts[0]).status());
  for (int turn = 0;; ++turn) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string goes_on, expander_.Sum(parts[1]));
    if (!IsKnown(goes_on)) return DoubtfulLoop(body, expander_.line());
    if (goes_on == "0") return absl::OkStatus();
    if (turn == kMostShellTurns) return TooManyTurns();
    PIPELAB_RETURN_IF_ERROR(RunAt(body.begin));
    if (!Continues()) return absl::OkStatus();
    PIPELAB_RETURN_IF_ERROR(expander_.Sum(parts[2]).status());
  }
}

absl::Status ScriptRunner::DoubleBrackets(bool live) {
  const size_t begin = place_.at++;
  std::vector<ConditionWord> words;
  expander_.set_line(Token(begin).line);
  while (!AtWord("]]")) {
    if (AtEnd()) return NotUnderstood();
    const ShellToken token = Token(place_.at++);
    if (token.text == "\n" || !live) continue;
    if (!token.is_word) {
      words.push_back({std::string(token.text)});
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(std::string value, expander_.Text(token.text));
    PIPELAB_ASSIGN_OR_RETURN(std::string pattern, expander_.Pattern(token.text));
    words.push_back({std::move(value), std::move(pattern)});
    // An expression has no blanks, but may have what is an operator elsewhere.
    const bool expression = words.size() > 1 && words[words.size() - 2].value == "=~";
    const char* end = token.text.data() + token.text.size();
    while (expression && !AtEnd() && Token().text.data() == end) {
      end += Token().text.size();
      absl::StrAppend(&words.back().value, Token(place_.at++).text);
    }
  }
  ++place_.at;
  return live ? SetCondition(words, {begin, place_.at}) : absl::OkStatus();
}

absl::Status ScriptRunner::SetCondition(const std::vector<ConditionWord>& words, Range range) {
  ShellDoubt doubt;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::StrAppend(&doubt.key, ShownValue(words[i].value), " ");
    if (i < 2) continue;
    PIPELAB_RETURN_IF_ERROR(expander_.Charge(words[i - 2].value.size() * words[i].value.size()));
  }
  const absl::optional<bool> holds = EvaluateShellCondition(words, &doubt);
  if (holds.has_value()) {
    SetOutcome(*holds);
  } else {
    SetDoubt(std::move(doubt), range);
  }
  return absl::OkStatus();
}

absl::Status ScriptRunner::SumCommand(bool live) {
  const ShellToken token = Token(place_.at++);
  if (!live) return absl::OkStatus();
  expander_.set_line(token.line);
  PIPELAB_ASSIGN_OR_RETURN(const std::string value,
                           expander_.Sum(token.text.substr(2, token.text.size() - 4)));
  if (IsKnown(value)) {
    SetOutcome(value != "0");
    return absl::OkStatus();
  }
  ShellDoubt doubt;
  for (const UnknownPart& part : UnknownParts(value)) doubt.names.push_back(part.name);
  SetDoubt(std::move(doubt), {place_.at - 1, place_.at});
  return absl::OkStatus();
}

absl::Status ScriptRunner::Brackets(const std::vector<std::string>& words, Range range) {
  std::vector<ConditionWord> condition;
  for (size_t i = 1; i + (words[0] == "[" ? 1 : 0) < words.size(); ++i) {
    std::string literal;
    for (const char c : words[i]) {
      if (absl::StrContains("*?[]\\", c)) literal += '\\';
      literal += c;
    }
    condition.push_back({words[i], std::move(literal)});
  }
  return SetCondition(condition, range);
}

}  // namespace pipelab
