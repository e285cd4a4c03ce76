#include "pipelines/recipes/shell_options.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostNested = 8;
constexpr size_t kMostLength = 1 << 16;  // of a word

bool IsNameChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class ShellReader {
 public:
  ShellReader(absl::string_view text, absl::string_view what) : rest_(text), what_(what) {}

  absl::StatusOr<std::vector<ShellOption>> Read() {
    while (!rest_.empty()) PIPELAB_RETURN_IF_ERROR(ReadNext());
    EndWord();
    return std::move(options_);
  }

 private:
  absl::Status ReadNext() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    line_ += c == '\n';
    if (c == '\\') return ReadEscaped();
    if (c == '\'' || c == '"') return ReadQuoted(c);
    if (c == '$') {
      word_ += TakeVariable(&rest_, 0);
      in_word_ = true;
      return word_.size() > kMostLength ? Error("is too long") : absl::OkStatus();
    }
    if (c == '#' && !in_word_) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c)) || c == ';') {
      EndWord();
      if (c == '\n' || c == ';') EndCommand();
    } else if (c == '(' && absl::EndsWith(word_, "=")) {
      word_.clear();  // an array begins
      in_word_ = false;
      EndCommand();
    } else if (!in_word_ && absl::StrContains("()|&", c)) {
      EndCommand();
    } else if (c == ')' && !absl::StrContains(word_, "(")) {
      EndWord();
      EndCommand();
    } else {
      word_ += c;
      in_word_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status ReadEscaped() {
    absl::ConsumePrefix(&rest_, "\r");
    if (rest_.empty()) return absl::OkStatus();
    if (rest_.front() == '\n') {
      ++line_;
      EndWord();
    } else {
      word_ += rest_.front();
      in_word_ = true;
    }
    rest_.remove_prefix(1);
    return absl::OkStatus();
  }

  absl::Status ReadQuoted(char quote) {
    const int begin = line_;
    if (!in_word_) quoted_ = true;
    in_word_ = true;
    while (!rest_.empty() && rest_.front() != quote) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      line_ += c == '\n';
      if (quote == '"' && c == '$') {
        word_ += TakeVariable(&rest_, 0);
      } else if (quote == '"' && c == '\\' && !rest_.empty()) {
        word_ += rest_.front();
        rest_.remove_prefix(1);
      } else {
        word_ += c;
      }
      if (word_.size() > kMostLength) return Error("is too long");
    }
    if (rest_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          what_, ":", begin, ": the quote ", absl::string_view(&quote, 1), " is not closed"));
    }
    rest_.remove_prefix(1);
    return absl::OkStatus();
  }

  absl::Status Error(absl::string_view reason) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ":", line_, ": a word ", reason));
  }

  // Behind a '$': what stands for it.
  std::string TakeVariable(absl::string_view* rest, int depth) {
    if (absl::StartsWith(*rest, "(")) return TakeCommand(rest);
    const bool braces = absl::ConsumePrefix(rest, "{");
    size_t length = 0;
    while (length < rest->size() && IsNameChar((*rest)[length])) ++length;
    const std::string name(rest->substr(0, length));
    rest->remove_prefix(length);
    absl::string_view more;
    if (braces) {
      more = rest->substr(0, rest->find('}'));
      rest->remove_prefix(std::min(more.size() + 1, rest->size()));
    }
    if (absl::StartsWith(more, "[")) return "";  // an array, read where it stands
    const auto found = variables_.find(name);
    if (found != variables_.end()) return found->second;
    if (absl::ConsumePrefix(&more, ":-") && depth < kMostNested) return Replaced(more, depth + 1);
    return absl::StrCat("$", name);
  }

  // $(command) and $((sum)) stay as they are.
  static std::string TakeCommand(absl::string_view* rest) {
    int depth = 0;
    size_t end = 0;
    while (end < rest->size()) {
      depth += (*rest)[end] == '(' ? 1 : (*rest)[end] == ')' ? -1 : 0;
      ++end;
      if (depth == 0) break;
    }
    std::string text = absl::StrCat("$", rest->substr(0, end));
    rest->remove_prefix(end);
    return text;
  }

  std::string Replaced(absl::string_view text, int depth) {
    std::string made;
    while (!text.empty() && made.size() <= kMostLength) {
      const char c = text.front();
      text.remove_prefix(1);
      if (c == '$') {
        made += TakeVariable(&text, depth);
      } else if (c != '"' && c != '\'') {
        made += c;
      }
    }
    return made;
  }

  void EndWord() {
    if (!in_word_) return;
    std::string word = std::exchange(word_, "");
    in_word_ = false;
    const bool quoted = std::exchange(quoted_, false);
    if (!quoted && first_ && TakeAssignment(word)) return;
    first_ = word == "export" || word == "local";
    // In an array a quoted option may have its values with it.
    std::vector<absl::string_view> parts = {word};
    if (quoted && absl::StartsWith(word, "--")) {
      parts = absl::StrSplit(word, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
    }
    for (const absl::string_view part : parts) TakePart(part, parts.size() > 1);
  }

  void TakePart(absl::string_view part, bool inner_quotes) {
    if (absl::StartsWith(part, "--") && part.size() > 2) {
      const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
      options_.push_back({pair[0], {}});
      if (pair.size() == 2) options_.back().values.push_back(pair[1]);
      takes_values_ = true;
    } else if (takes_values_) {
      if (inner_quotes && part.size() > 1 && part.front() == '\'' && part.back() == '\'') {
        part = part.substr(1, part.size() - 2);
      }
      options_.back().values.emplace_back(part);
    }
  }

  bool TakeAssignment(const std::string& word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    for (size_t i = 0; i < equals; ++i) {
      if (!IsNameChar(word[i])) return false;
    }
    variables_[word.substr(0, equals)] = word.substr(equals + 1);
    return true;
  }

  void EndCommand() {
    takes_values_ = false;
    first_ = true;
  }

  absl::string_view rest_;
  const std::string what_;
  int line_ = 1;
  std::string word_;
  bool in_word_ = false, quoted_ = false;
  bool first_ = true;  // the next word may be an assignment
  bool takes_values_ = false;
  std::map<std::string, std::string> variables_;
  std::vector<ShellOption> options_;
};

}  // namespace

absl::StatusOr<std::vector<ShellOption>> ParseShellOptions(absl::string_view text,
                                                           absl::string_view what) {
  return ShellReader(text, what).Read();
}

}  // namespace pipelab
