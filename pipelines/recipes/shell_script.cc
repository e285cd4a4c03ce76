#include "pipelines/recipes/shell_script.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "pipelines/recipes/shell_runner.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostNestedCommands = 48;

bool IsReserved(absl::string_view word) {
  return IsOneOf(word, {"if", "then", "else", "elif", "fi", "do", "done", "{", "}", "!", "while",
                        "until", "time"});
}

}  // namespace

// Commands that leave the script's variables and its path alone.
bool IsIdleShellCommand(absl::string_view word) {
  return IsOneOf(word, {"echo", "printf", "mkdir", "rm",   "cp",    "mv",    "ln",      "ls",
                        "cat",  "cd",     "pushd", "popd", "sleep", "touch", "pwd",     "chmod",
                        "tee",  "true",   ":",     "wait", "trap",  "date",  "hostname"});
}

ScriptRunner::ScriptRunner(absl::string_view what, const ShellState& given,
                           const std::vector<int>& path)
    : what_(what),
      path_(path),
      state_(given),
      expander_(&state_, what, [this](const auto& d) { return Decide(d); }) {
  std::set<std::string, std::less<>> names;
  for (auto& [name, variable] : state_.variables) {
    names.insert(name);
    variable.exported = true;
  }
  expander_.SetGiven(std::move(names));
}

ShellRun ScriptRunner::Run(absl::string_view text) {
  run_.status = RunText(std::string(text), 1);
  run_.state = std::move(state_);
  run_.work = expander_.work();
  return std::move(run_);
}

bool ScriptRunner::AtOperator(std::initializer_list<absl::string_view> operators) const {
  return !AtEnd() && !Token().is_word && IsOneOf(Token().text, operators);
}

bool ScriptRunner::AtWord(absl::string_view word) const {
  return !AtEnd() && Token().is_word && Token().text == word;
}

bool ScriptRunner::TakeWord(absl::string_view word) {
  const bool found = AtWord(word);
  place_.at += found;
  return found;
}

void ScriptRunner::SkipLines() {
  while (AtOperator({"\n", ";", "&"})) ++place_.at;
}

bool ScriptRunner::AtClose() const {
  if (AtEnd()) return true;
  if (!Token().is_word) return IsOneOf(Token().text, {")", ";;", ";&", ";;&"});
  return IsOneOf(Token().text, {"then", "else", "elif", "fi", "do", "done", "esac", "}"});
}

absl::Status ScriptRunner::NotUnderstood() {
  if (AtEnd()) {
    if (!place_.source->tokens.empty()) expander_.set_line(place_.source->tokens.back().line);
    return expander_.Error("the script ends within a command");
  }
  expander_.set_line(Token().line);
  const absl::string_view text = Token().text == "\n" ? "the end of the line" : Token().text;
  return expander_.Error("'", text.substr(0, 40), "' is not understood here");
}

absl::Status ScriptRunner::Expect(absl::string_view text) {
  if (AtEnd() || Token().text != text) return NotUnderstood();
  ++place_.at;
  return absl::OkStatus();
}

std::string ScriptRunner::Written(Range range) const {
  const ShellToken &first = Token(range.begin), &last = Token(range.end - 1);
  const absl::string_view text(
      first.text.data(),
      static_cast<size_t>(last.text.data() + last.text.size() - first.text.data()));
  return absl::StrReplaceAll(text.substr(0, 60), {{"\n", " "}});
}

// The first word of the range's simple command that begins at `at`, or "".
bool ScriptRunner::BeginsCommand(Range range, size_t at) const {
  if (!Token(at).is_word || IsReserved(Token(at).text)) return false;
  return at == range.begin || !Token(at - 1).is_word || IsReserved(Token(at - 1).text);
}

// Whether nothing in it has to do with variables, the path or a launch.
bool ScriptRunner::IsIdleRange(Range range) const {
  for (size_t i = range.begin; i < range.end; ++i) {
    if (BeginsCommand(range, i) && !IsIdleShellCommand(Token(i).text)) return false;
  }
  return true;
}

// Whether its last command ends the script, come what may.
bool ScriptRunner::EndsScript(Range range) const {
  size_t last = range.end;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (BeginsCommand(range, i)) last = i;
  }
  if (last == range.end || Token(last).text != "exit") return false;
  for (size_t i = last; i < range.end; ++i) {
    if (Token(i).is_word && IsReserved(Token(i).text) && Token(i).text != "}") return false;
  }
  return last == range.begin || !IsOneOf(Token(last - 1).text, {"&&", "||", "|"});
}

absl::Status ScriptRunner::RunText(std::string text, int line) {
  if (nested_texts_ >= kMostNestedTexts) return expander_.Error("commands are nested too deeply");
  auto source = std::make_shared<Source>();
  source->text = std::move(text);
  PIPELAB_RETURN_IF_ERROR(expander_.Charge(source->text.size()));
  PIPELAB_ASSIGN_OR_RETURN(source->tokens, ReadShellWords(source->text, what_, line));
  ShellAssignment a;
  for (const ShellToken& token : source->tokens) {
    if (ParseShellAssignment(token.text, &a) && !RefersToItself(a)) expander_.AddOwn(a.name);
  }
  return RunPlace({source, 0}, [&] {
    PIPELAB_RETURN_IF_ERROR(List(true));
    return AtEnd() ? absl::OkStatus() : NotUnderstood();
  });
}

absl::Status ScriptRunner::RunAt(size_t begin) {
  const size_t at = std::exchange(place_.at, begin);
  const absl::Status status = List(true);
  place_.at = at;
  return status;
}

absl::Status ScriptRunner::List(bool live) {
  while (true) {
    SkipLines();
    if (AtClose()) return absl::OkStatus();
    PIPELAB_RETURN_IF_ERROR(AndOr(live));
    if (AtClose()) return absl::OkStatus();
    if (!AtOperator({"\n", ";", "&"})) return NotUnderstood();
  }
}

absl::Status ScriptRunner::AndOr(bool live) {
  PIPELAB_RETURN_IF_ERROR(Pipeline(live));
  while (AtOperator({"&&", "||"})) {
    const bool is_and = Token().text == "&&";
    ++place_.at;
    SkipLines();
    bool runs = false;
    if (Goes(live)) {
      PIPELAB_ASSIGN_OR_RETURN(runs, RunsNext(is_and));
    }
    PIPELAB_RETURN_IF_ERROR(Pipeline(Goes(live) && runs));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ScriptRunner::RunsNext(bool is_and) {
  if (!outcome_.holds.has_value()) {
    Range range = {place_.at, 0};
    PIPELAB_RETURN_IF_ERROR(Pipeline(false));
    range.end = std::exchange(place_.at, range.begin);
    if (EndsScript(range)) {
      SetOutcome(!is_and);
      return false;
    }
    if (IsIdleRange(range)) return false;
  }
  PIPELAB_ASSIGN_OR_RETURN(const bool holds, Holds());
  return holds == is_and;
}

absl::Status ScriptRunner::Pipeline(bool live) {
  bool negated = false;
  while (AtWord("!") || AtWord("time")) negated ^= Token(place_.at++).text == "!";
  bool piped = false;
  if (Goes(live)) {
    const size_t begin = place_.at;
    PIPELAB_RETURN_IF_ERROR(Command(false));
    piped = AtOperator({"|", "|&"});
    place_.at = begin;
  }
  while (true) {
    const auto part = [&] { return Command(Goes(live)); };
    PIPELAB_RETURN_IF_ERROR(piped ? Subshell(part) : part());
    if (!AtOperator({"|", "|&"})) break;
    ++place_.at;
    SkipLines();
  }
  if (negated && Goes(live)) {
    outcome_.inverted ^= true;
    if (outcome_.holds.has_value()) outcome_.holds = !*outcome_.holds;
  }
  return absl::OkStatus();
}

absl::Status ScriptRunner::Command(bool live) {
  if (nested_ >= kMostNestedCommands) return expander_.Error("commands are nested too deeply");
  ++nested_;
  const absl::Status status = AnyCommand(Goes(live));
  --nested_;
  return status;
}

absl::Status ScriptRunner::AnyCommand(bool live) {
  if (AtEnd()) return NotUnderstood();
  if (AtOperator({"("})) {
    ++place_.at;
    const auto list = [&] { return List(live); };
    PIPELAB_RETURN_IF_ERROR(live ? Subshell(list) : list());
    return Expect(")");
  }
  if (!Token().is_word) return NotUnderstood();
  const absl::string_view word = Token().text;
  const bool named = place_.at + 2 < place_.source->tokens.size() &&
                     Token(place_.at + 1).text == "(" && Token(place_.at + 2).text == ")";
  if (named || word == "function") return Function(live);
  if (TakeWord("{")) {
    PIPELAB_RETURN_IF_ERROR(List(live));
    return Expect("}");
  }
  if (word == "if") return If(live);
  if (word == "case") return Case(live);
  if (word == "for") return For(live);
  if (word == "while" || word == "until") return While(live);
  if (word == "[[") return DoubleBrackets(live);
  if (word == "select" || word == "coproc") return NotUnderstood();
  if (absl::StartsWith(word, "((") && absl::EndsWith(word, "))")) return SumCommand(live);
  return AtClose() ? NotUnderstood() : Simple(live);
}

absl::Status ScriptRunner::Function(bool live) {
  (void)TakeWord("function");
  if (AtEnd()) return NotUnderstood();
  const std::string name(Token(place_.at++).text);
  if (AtOperator({"("})) {
    ++place_.at;
    PIPELAB_RETURN_IF_ERROR(Expect(")"));
  }
  SkipLines();
  if (live) functions_[name] = place_;
  return Command(false);
}

absl::Status ScriptRunner::If(bool live) {
  struct Clause {
    size_t condition;
    Range body;
  };
  std::vector<Clause> clauses;
  do {
    ++place_.at;
    Clause c = {place_.at, {0, 0}};
    PIPELAB_RETURN_IF_ERROR(List(false));
    PIPELAB_RETURN_IF_ERROR(Expect("then"));
    PIPELAB_ASSIGN_OR_RETURN(c.body, SkipList());
    clauses.push_back(c);
  } while (AtWord("elif"));
  absl::optional<Range> otherwise;
  if (TakeWord("else")) {
    PIPELAB_ASSIGN_OR_RETURN(otherwise, SkipList());
  }
  PIPELAB_RETURN_IF_ERROR(Expect("fi"));
  if (!live) return absl::OkStatus();
  for (const Clause& c : clauses) {
    PIPELAB_RETURN_IF_ERROR(RunAt(c.condition));
    if (flow_ != Flow::kGo) return absl::OkStatus();
    bool taken = false;
    const bool last = &c == &clauses.back();
    if (!outcome_.holds.has_value() && EndsScript(c.body)) continue;
    if (!outcome_.holds.has_value() && last && !otherwise.has_value() && IsIdleRange(c.body)) break;
    if (!outcome_.holds.has_value() && last && otherwise.has_value() && EndsScript(*otherwise)) {
      taken = true;
    } else {
      PIPELAB_ASSIGN_OR_RETURN(taken, Holds());
    }
    if (taken) return RunAt(c.body.begin);
  }
  SetOutcome(true);
  return otherwise.has_value() ? RunAt(otherwise->begin) : absl::OkStatus();
}

absl::StatusOr<ScriptRunner::Range> ScriptRunner::SkipList() {
  Range range = {place_.at, 0};
  PIPELAB_RETURN_IF_ERROR(List(false));
  range.end = place_.at;
  return range;
}

absl::Status ScriptRunner::Case(bool live) {
  const size_t begin = place_.at++;
  if (AtEnd()) return NotUnderstood();
  const absl::string_view raw = Token(place_.at++).text;
  const Range written = {begin, place_.at};
  SkipLines();
  PIPELAB_RETURN_IF_ERROR(Expect("in"));
  std::vector<CaseClause> clauses;
  while (true) {
    SkipLines();
    if (TakeWord("esac")) break;
    if (AtOperator({"("})) ++place_.at;
    CaseClause c;
    while (!AtEnd() && Token().is_word) {
      c.patterns.push_back(Token(place_.at++).text);
      if (AtOperator({"|"})) ++place_.at;
    }
    PIPELAB_RETURN_IF_ERROR(Expect(")"));
    PIPELAB_ASSIGN_OR_RETURN(c.body, SkipList());
    clauses.push_back(std::move(c));
    if (AtOperator({";;"})) {
      ++place_.at;
    } else if (!AtWord("esac")) {
      return NotUnderstood();
    }
  }
  if (!live) return absl::OkStatus();
  expander_.set_line(Token(begin).line);
  PIPELAB_ASSIGN_OR_RETURN(const std::string word, expander_.Text(raw));
  SetOutcome(true);
  if (!IsKnown(word)) return DoubtfulCase(word, clauses, written);
  for (const CaseClause& c : clauses) {
    PIPELAB_ASSIGN_OR_RETURN(const bool matches, Matches(word, c));
    if (matches) return RunAt(c.body.begin);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ScriptRunner::Matches(const std::string& word, const CaseClause& clause) {
  bool matches = false;
  for (const absl::string_view p : clause.patterns) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string pattern, expander_.Pattern(p));
    if (!IsKnown(pattern)) return expander_.Error("the pattern ", p, " is not known");
    PIPELAB_RETURN_IF_ERROR(expander_.Charge((word.size() + 1) * (pattern.size() + 1)));
    matches |= MatchesShellPattern(word, pattern);
  }
  return matches;
}

// The alternatives are clauses that do not end the script, or none, if none takes all.
absl::Status ScriptRunner::DoubtfulCase(const std::string& word,
                                        const std::vector<CaseClause>& clauses, Range written) {
  std::vector<const CaseClause*> alternatives;
  bool takes_all = false, idle = true;
  const std::string likely = ShownValue(word, "");
  size_t likely_at = 0;
  ShellDoubt doubt;
  for (const CaseClause& c : clauses) {
    takes_all |= IsOneOf("*", {c.patterns.empty() ? "" : c.patterns[0]});
    if (EndsScript(c.body)) continue;
    idle &= IsIdleRange(c.body);
    PIPELAB_ASSIGN_OR_RETURN(const bool matches, Matches(likely, c));
    if (matches && likely_at == 0) likely_at = alternatives.size() + 1;
    if (doubt.example.empty() && !c.patterns.empty()) doubt.example = std::string(c.patterns[0]);
    alternatives.push_back(&c);
  }
  if (idle) return absl::OkStatus();
  if (!takes_all) alternatives.push_back(nullptr);
  if (likely_at > 0) std::swap(alternatives[0], alternatives[likely_at - 1]);
  if (likely_at == 0 && !takes_all) std::swap(alternatives.front(), alternatives.back());
  doubt.line = Token(written.begin).line;
  doubt.text = Written(written);
  doubt.key = ShownValue(word);
  for (const UnknownPart& part : UnknownParts(word)) doubt.names.push_back(part.name);
  PIPELAB_ASSIGN_OR_RETURN(const int chosen, Choose(doubt, static_cast<int>(alternatives.size())));
  const CaseClause* c = alternatives[static_cast<size_t>(chosen)];
  return c == nullptr ? absl::OkStatus() : RunAt(c->body.begin);
}

ShellRun RunShellScript(absl::string_view text, absl::string_view what, const ShellState& given,
                        const std::vector<int>& path) {
  return ScriptRunner(what, given, path).Run(text);
}

}  // namespace pipelab
