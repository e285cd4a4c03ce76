#include "pipelines/recipes/shell_words.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostNestedQuotes = 32;
constexpr size_t kOpen = absl::string_view::npos;

// The longer ones first.
constexpr absl::string_view kOperators[] = {";;&", "&>>", "<<<", "<<-", ";;", ";&", "&&", "&>",
                                            "||",  "|&",  "<<",  "<&",  "<>", ">>", ">&", ">|",
                                            ";",   "&",   "|",   "(",   ")",  "<",  ">",  "\n"};

bool IsIn(char c, absl::string_view characters) { return absl::StrContains(characters, c); }

class WordReader {
 public:
  WordReader(absl::string_view text, absl::string_view what, int line, ShellForm form)
      : text_(text), what_(what), line_(line), script_(form == ShellForm::kScript) {}

  absl::StatusOr<std::vector<ShellToken>> Read() {
    while (SkipBlanks()) {
      const absl::string_view op = Operator();
      if (op.empty()) {
        PIPELAB_ASSIGN_OR_RETURN(const ShellToken word, TakeWord());
        in_test_ = word.text == "[[" || (in_test_ && word.text != "]]");
        tokens_.push_back(word);
        continue;
      }
      const int line = line_;
      Advance(op.size());
      if (op == "\n") {
        SkipHereDocuments();
      } else if (IsIn('<', op) || IsIn('>', op)) {
        PIPELAB_RETURN_IF_ERROR(Redirect(op));
        continue;
      }
      tokens_.push_back({op, line, false});
    }
    return std::move(tokens_);
  }

 private:
  void Advance(size_t count) {
    const auto begin = text_.begin() + static_cast<ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<ptrdiff_t>(count), '\n'));
    at_ += count;
  }

  // To the next token; false at the end.
  bool SkipBlanks() {
    while (at_ < text_.size()) {
      if (IsIn(text_[at_], " \t\r")) {
        ++at_;
      } else if (absl::StartsWith(text_.substr(at_), "\\\n")) {
        Advance(2);
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return true;
      }
    }
    return false;
  }

  absl::string_view Operator() const {
    const absl::string_view rest = text_.substr(at_);
    if (!script_) return rest.substr(0, rest.front() == '\n');
    const bool word = absl::StartsWith(rest, "<(") || absl::StartsWith(rest, ">(") ||
                      (in_test_ && IsIn(rest.front(), "<>"));
    if (word || (absl::StartsWith(rest, "((") && EndOfSum(at_) != kOpen)) return "";
    for (const absl::string_view op : kOperators) {
      if (absl::StartsWith(rest, op)) return op;
    }
    return "";
  }

  // Behind the "((...))" at `at`.
  size_t EndOfSum(size_t at) const {
    const size_t end = EndOfShellSpan(text_, at + 1, ')');
    return end != kOpen && text_[end - 2] == ')' ? end : kOpen;
  }

  absl::StatusOr<ShellToken> TakeWord() {
    const size_t begin = at_;
    size_t end = at_;
    const absl::string_view two = text_.substr(at_, 2);
    if (script_ && (two == "<(" || two == ">(")) end = EndOfShellSpan(text_, at_ + 2, ')');
    if (script_ && two == "((") end = EndOfSum(at_);
    if (script_ && end == at_ && IsIn(two[0], "<>")) ++end;
    while (end < text_.size() && !IsIn(text_[end], script_ ? " \t\n;&|<>()" : " \t\n")) {
      end = EndOfPart(end);
    }
    if (end == kOpen) {
      const size_t open = std::min(text_.find_first_of("'\"`({", at_), text_.size() - 1);
      return absl::InvalidArgumentError(absl::StrCat(what_, ":", line_, ": the ",
                                                     IsIn(text_[open], "({") ? "" : "quote ",
                                                     text_.substr(open, 1), " is not closed"));
    }
    const ShellToken word = {text_.substr(begin, end - begin), line_, true};
    Advance(end - begin);
    return word;
  }

  // Behind the part of a word at `at`: a piece, and the array that follows an "=".
  size_t EndOfPart(size_t at) const {
    const size_t end = EndOfShellPiece(text_, at);
    const bool array = script_ && text_[at] == '=' && end < text_.size() && text_[end] == '(';
    return array ? EndOfShellSpan(text_, end + 1, ')') : end;
  }

  absl::Status Redirect(absl::string_view op) {
    int descriptor = 0;
    if (!tokens_.empty() && absl::SimpleAtoi(tokens_.back().text, &descriptor) &&
        tokens_.back().text.end() == text_.begin() + static_cast<ptrdiff_t>(at_ - op.size())) {
      tokens_.pop_back();
    }
    if (!SkipBlanks() || !Operator().empty()) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const ShellToken target, TakeWord());
    if (op == "<<" || op == "<<-") {
      std::string end;
      for (const char c : target.text) {
        if (!IsIn(c, "\\'\"")) end += c;
      }
      here_documents_.emplace_back(std::move(end), op == "<<-");
    }
    return absl::OkStatus();
  }

  void SkipHereDocuments() {
    for (const auto& [end, tabs] : here_documents_) {
      while (at_ < text_.size()) {
        absl::string_view row = text_.substr(at_, text_.find('\n', at_) - at_);
        Advance(std::min(row.size() + 1, text_.size() - at_));
        while (tabs && absl::ConsumePrefix(&row, "\t")) continue;
        if (row == end) break;
      }
    }
    here_documents_.clear();
  }

  const absl::string_view text_;
  const std::string what_;
  size_t at_ = 0;
  int line_;
  const bool script_;
  bool in_test_ = false;  // behind "[[", where "<" and ">" are words
  std::vector<std::pair<std::string, bool>> here_documents_;
  std::vector<ShellToken> tokens_;
};

}  // namespace

size_t EndOfShellPiece(absl::string_view text, size_t at, int depth) {
  if (depth > kMostNestedQuotes) return kOpen;
  const absl::string_view next = text.substr(at + 1, 1);
  switch (text[at]) {
    case '\\':
      return std::min(at + 2, text.size());
    case '\'': {
      const size_t end = text.find('\'', at + 1);
      return end == kOpen ? kOpen : end + 1;
    }
    case '"':
    case '`':
      return EndOfShellSpan(text, at + 1, text[at], depth + 1);
    case '$':
      if (next == "(") return EndOfShellSpan(text, at + 2, ')', depth + 1);
      if (next == "{") return EndOfShellSpan(text, at + 2, '}', depth + 1);
      if (next != "'") return at + 1;
      for (at += 2; at < text.size() && text[at] != '\''; ++at) at += text[at] == '\\';
      return at < text.size() ? at + 1 : kOpen;
    default:
      return at + 1;
  }
}

size_t EndOfShellSpan(absl::string_view text, size_t at, char close, int depth) {
  if (depth > kMostNestedQuotes) return kOpen;
  const size_t begin = at;
  while (at < text.size() && text[at] != close) {
    const bool literal = (close == '"' && text[at] == '\'') || (close == '`' && text[at] != '\\');
    if (close == ')' && text[at] == '(') {
      at = EndOfShellSpan(text, at + 1, ')', depth + 1);
    } else if (close == ')' && text[at] == '#' && at > begin && IsIn(text[at - 1], " \t\n")) {
      at = text.find('\n', at);  // a comment
    } else {
      at = literal ? at + 1 : EndOfShellPiece(text, at, depth + 1);
    }
  }
  return at < text.size() ? at + 1 : kOpen;
}

size_t ShellNameLength(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[length])) || text[length] == '_')) {
    ++length;
  }
  return length > 0 && absl::ascii_isdigit(static_cast<unsigned char>(text[0])) ? 0 : length;
}

bool IsShellName(absl::string_view text) {
  return !text.empty() && ShellNameLength(text) == text.size();
}

bool ParseShellAssignment(absl::string_view word, ShellAssignment* assignment) {
  *assignment = ShellAssignment();
  assignment->name = word.substr(0, ShellNameLength(word));
  if (assignment->name.empty()) return false;
  word.remove_prefix(assignment->name.size());
  if (absl::StartsWith(word, "[")) {
    const size_t end = EndOfShellSpan(word, 1, ']');
    if (end == kOpen) return false;
    assignment->has_subscript = true;
    assignment->subscript = word.substr(1, end - 2);
    word.remove_prefix(end);
  }
  assignment->appends = absl::ConsumePrefix(&word, "+");
  if (!absl::ConsumePrefix(&word, "=")) return false;
  assignment->value = word;
  return true;
}

absl::StatusOr<std::vector<ShellToken>> ReadShellWords(absl::string_view text,
                                                       absl::string_view what, int line,
                                                       ShellForm form) {
  return WordReader(text, what, line, form).Read();
}

}  // namespace pipelab
