#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "pipelines/recipes/shell_runner.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

bool IsDeclaration(absl::string_view word) {
  return IsOneOf(word, {"export", "local", "declare", "typeset", "readonly"});
}

// "{1..4}" and "{a,b}"; nothing else is taken apart.
std::vector<std::string> ExpandBraces(absl::string_view raw) {
  if (!absl::StartsWith(raw, "{") || !absl::EndsWith(raw, "}")) return {std::string(raw)};
  const absl::string_view inner = raw.substr(1, raw.size() - 2);
  const std::vector<absl::string_view> ends = absl::StrSplit(inner, "..");
  int from = 0, to = 0;
  std::vector<std::string> words;
  if (ends.size() == 2 && absl::SimpleAtoi(ends[0], &from) && absl::SimpleAtoi(ends[1], &to)) {
    for (int i = from; words.size() < kMostShellTurns + 1; i += from <= to ? 1 : -1) {
      words.push_back(absl::StrCat(i));
      if (i == to) break;
    }
    return words;
  }
  const bool list = absl::StrContains(inner, ',') && !absl::StrContains(inner, '{');
  if (!list) return {std::string(raw)};
  return absl::StrSplit(inner, ',');
}

}  // namespace

absl::Status ScriptRunner::Simple(bool live) {
  const size_t begin = place_.at;
  while (!AtEnd() && Token().is_word) ++place_.at;
  const Range range = {begin, place_.at};
  if (!live) return absl::OkStatus();
  expander_.set_line(Token(begin).line);
  PIPELAB_RETURN_IF_ERROR(expander_.Charge(32));
  size_t first = begin;
  ShellAssignment assignment;
  while (first < range.end && ParseShellAssignment(Token(first).text, &assignment)) ++first;
  if (first == range.end) return AssignAll(range);
  if (IsDeclaration(Token(first).text)) return Declare({first, range.end});
  std::vector<absl::string_view> raws;
  for (size_t i = first; i < range.end; ++i) raws.push_back(Token(i).text);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> words, Expanded(raws));
  SetOutcome(true);
  if (words.empty()) return absl::OkStatus();
  return Execute(words, range, {begin, first});
}

absl::StatusOr<std::vector<std::string>> ScriptRunner::Expanded(
    const std::vector<absl::string_view>& raws) {
  std::vector<std::string> words;
  for (const absl::string_view raw : raws) {
    for (const std::string& part : ExpandBraces(raw)) {
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> fields, expander_.Fields(part));
      words.insert(words.end(), fields.begin(), fields.end());
    }
  }
  return words;
}

absl::Status ScriptRunner::AssignAll(Range range) {
  SetOutcome(true);
  for (size_t i = range.begin; i < range.end; ++i) {
    PIPELAB_RETURN_IF_ERROR(AssignOne(Token(i).text));
    // Its outcome is the command's.
    if (Token(i).text.find_first_of("`(") != absl::string_view::npos &&
        !absl::StrContains(Token(i).text, "=(") && !absl::StrContains(Token(i).text, "((")) {
      ShellDoubt doubt;
      doubt.likely = true;
      SetDoubt(std::move(doubt), range);
    }
  }
  return absl::OkStatus();
}

absl::Status ScriptRunner::AssignOne(absl::string_view raw) {
  ShellAssignment assignment;
  if (!ParseShellAssignment(raw, &assignment)) return absl::OkStatus();
  run_.assigned.emplace_back(assignment.name);
  return expander_.Assign(assignment);
}

absl::Status ScriptRunner::Declare(Range range) {
  const absl::string_view kind = Token(range.begin).text;
  bool associative = false, exported = kind == "export";
  SetOutcome(true);
  for (size_t i = range.begin + 1; i < range.end; ++i) {
    absl::string_view raw = Token(i).text;
    if (absl::StartsWith(raw, "-")) {
      associative |= absl::StrContains(raw, 'A');
      exported |= absl::StrContains(raw, 'x');
      if (absl::StrContains(raw, 'n')) return expander_.Error(kind, " ", raw, ": is not read");
      continue;
    }
    ShellAssignment assignment;
    std::string text;
    if (!ParseShellAssignment(raw, &assignment)) {
      PIPELAB_ASSIGN_OR_RETURN(text, expander_.Text(raw));
      if (!IsKnown(text)) continue;
      raw = text;
    }
    const std::string name(raw.substr(0, ShellNameLength(raw)));
    if (name.empty()) continue;
    if (kind != "export" && kind != "readonly" && !locals_.empty()) {
      const ShellVariable* before = state_.Find(name);
      locals_.back().try_emplace(name, before == nullptr ? absl::optional<ShellVariable>()
                                                         : absl::optional<ShellVariable>(*before));
      if (name == raw) state_.variables[name] = {{{"0", ""}}};
    }
    if (associative) state_.variables[name].associative = true;
    if (text.empty()) {
      PIPELAB_RETURN_IF_ERROR(AssignOne(raw));
    } else if (const size_t equals = text.find('='); equals != std::string::npos) {
      PIPELAB_RETURN_IF_ERROR(expander_.AssignValue(name, "0", text.substr(equals + 1)));
    }
    if (exported && state_.Find(name) != nullptr) state_.variables[name].exported = true;
  }
  return absl::OkStatus();
}

absl::Status ScriptRunner::Execute(const std::vector<std::string>& words, Range range,
                                   Range prefix) {
  const std::string& name = words[0];
  if (name == "[" || name == "test") return Brackets(words, range);
  if (IsOneOf(name, {"exit", "return", "break", "continue"})) {
    loops_left_ = 1;
    if (words.size() > 1) (void)absl::SimpleAtoi(words[1], &loops_left_);
    flow_ = name == "exit"     ? Flow::kExit
            : name == "return" ? Flow::kReturn
            : name == "break"  ? Flow::kBreak
                               : Flow::kContinue;
    if (name == "return" && words.size() > 1) SetOutcome(words[1] == "0");
    return absl::OkStatus();
  }
  if (name == "false") SetOutcome(false);
  if (IsOneOf(name, {"true", "false", ":"})) return absl::OkStatus();
  if (const auto found = functions_.find(name); found != functions_.end()) {
    return Call(found->second, words);
  }
  if (name == "eval")
    return RunText(Reread(absl::StrJoin(words.begin() + 1, words.end(), " ")), expander_.line());
  if (name == "set" || name == "shift") {
    SetArguments(words);
    return absl::OkStatus();
  }
  if (name == "unset") {
    for (const std::string& word : words) state_.variables.erase(word);
    return absl::OkStatus();
  }
  if (name == "let") {
    for (size_t i = 1; i < words.size(); ++i) {
      PIPELAB_RETURN_IF_ERROR(expander_.Sum(words[i]).status());
    }
    return absl::OkStatus();
  }
  ShellDoubt doubt;
  doubt.likely = true;
  if (name == "getopts" && !state_.knows_arguments) doubt.names = {"#"};
  if (name != "echo" && name != "printf") SetDoubt(std::move(doubt), range);
  if (IsOneOf(name, {"read", "mapfile", "readarray", "getopts"}) ||
      (name == "printf" && words.size() > 2 && words[1] == "-v")) {
    return Forget(words);
  }
  return RunProgram(words, prefix);
}

absl::Status ScriptRunner::Call(const Place& function, const std::vector<std::string>& words) {
  if (nested_texts_ >= kMostNestedTexts) return expander_.Error("functions call too deeply");
  std::vector<std::string> arguments(words.begin() + 1, words.end());
  std::swap(arguments, state_.arguments);
  const bool knew = std::exchange(state_.knows_arguments, true);
  locals_.emplace_back();
  const absl::Status status = RunPlace(function, [&] { return Command(true); });
  for (auto& [name, before] : locals_.back()) {
    if (before.has_value()) {
      state_.variables[name] = *std::move(before);
    } else {
      state_.variables.erase(name);
    }
  }
  locals_.pop_back();
  state_.arguments = std::move(arguments);
  state_.knows_arguments = knew;
  if (flow_ == Flow::kReturn) flow_ = Flow::kGo;
  return status;
}

void ScriptRunner::SetArguments(const std::vector<std::string>& words) {
  std::vector<std::string>& arguments = state_.arguments;
  if (words[0] == "shift") {
    size_t count = 1;
    if (words.size() > 1) (void)absl::SimpleAtoi(words[1], &count);
    arguments.erase(arguments.begin(),
                    arguments.begin() + static_cast<ptrdiff_t>(std::min(count, arguments.size())));
    return;
  }
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return;
  arguments.assign(dashes + 1, words.end());
  state_.knows_arguments = true;
}

// Variables that are read from elsewhere.
absl::Status ScriptRunner::Forget(const std::vector<std::string>& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (!IsShellName(words[i])) continue;
    PIPELAB_RETURN_IF_ERROR(
        expander_.AssignValue(words[i], "0",
                              UnknownValue({words[i], expander_.line(), absl::StrCat("$", words[i]),
                                            words[0][0] == 'm'})));
  }
  return absl::OkStatus();
}

// The text with variables in the place of what is not known, to be read as a script.
std::string ScriptRunner::Reread(absl::string_view text) {
  std::string made;
  while (!text.empty()) {
    const size_t begin = std::min(text.find(kUnknownBegin), text.size());
    absl::StrAppend(&made, text.substr(0, begin));
    text.remove_prefix(begin);
    if (text.empty()) break;
    const size_t end = text.find(kUnknownEnd) + 1;
    const std::string name = absl::StrCat("__unknown_", rereads_++);
    state_.variables[name] = {{{"0", std::string(text.substr(0, end))}}, false, true};
    absl::StrAppend(&made, "${", name, "}");
    text.remove_prefix(end);
  }
  return made;
}

absl::Status ScriptRunner::RunProgram(const std::vector<std::string>& words, Range prefix) {
  const auto is_shell = [](absl::string_view word) {
    return IsOneOf(word.substr(word.rfind('/') + 1), {"bash", "sh", "zsh", "dash"});
  };
  const int line = expander_.line();
  if (words[0] == "exec" && words.size() > 1) flow_ = Flow::kExit;
  if (words.size() > 1 && IsOneOf(words[0], {"source", "."})) {
    run_.other_files.push_back(absl::StrCat("line ", line, " reads ", ShownValue(words[1])));
    expander_.ForgetOwn();
    return absl::OkStatus();
  }
  const auto shell = std::find_if(words.begin(), words.end(), is_shell);
  if (IsIdleShellCommand(words[0]) || shell == words.end()) {
    run_.commands.push_back({words, line});
    return absl::OkStatus();
  }
  auto text = shell + 1;
  bool inline_text = false;
  for (; text != words.end() && absl::StartsWith(*text, "-"); ++text) {
    inline_text |= !absl::StartsWith(*text, "--") && absl::StrContains(*text, 'c');
  }
  // A value of that name is none.
  if (!inline_text && shell != words.begin() && absl::StartsWith(*(shell - 1), "--")) {
    run_.commands.push_back({words, line});
    return absl::OkStatus();
  }
  if (text == words.end()) return absl::OkStatus();
  if (!inline_text) {
    run_.other_files.push_back(absl::StrCat("line ", line, " runs ", ShownValue(*text)));
    return absl::OkStatus();
  }
  const std::string script = Reread(*text);
  return Subshell([&]() -> absl::Status {
    for (size_t i = prefix.begin; i < prefix.end; ++i) {
      PIPELAB_RETURN_IF_ERROR(AssignOne(Token(i).text));
      ShellAssignment a;
      ParseShellAssignment(Token(i).text, &a);
      state_.variables[std::string(a.name)].exported = true;
    }
    for (auto it = state_.variables.begin(); it != state_.variables.end();) {
      it = it->second.exported ? std::next(it) : state_.variables.erase(it);
    }
    state_.arguments.assign(std::min(text + 2, words.end()), words.end());
    state_.knows_arguments = true;
    const Outcome outcome = outcome_;
    PIPELAB_RETURN_IF_ERROR(RunText(script, line));
    outcome_ = outcome;
    return absl::OkStatus();
  });
}

}  // namespace pipelab
