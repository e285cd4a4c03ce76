#include "pipelines/ir/text_cursor.h"

#include <algorithm>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {

bool TextCursor::Take(absl::string_view word) {
  if (!absl::StartsWith(text_.substr(at_), word)) return false;
  at_ += word.size();
  return true;
}

absl::Status TextCursor::Expect(absl::string_view word) {
  if (Take(word)) return absl::OkStatus();
  return Expected(absl::StrCat("'", absl::CEscape(word), "'"));
}

void TextCursor::SkipBlanks() {
  while (Peek() == ' ' || Peek() == '\t' || Peek() == '\r') ++at_;
}

void TextCursor::SkipEmptyLines() {
  while (!AtEnd()) {
    const size_t begin = at_;
    SkipBlanks();
    if (!AtLineEnd() && Peek() != '#') {
      at_ = begin;
      return;
    }
    RestOfLine();
  }
}

absl::string_view TextCursor::RestOfLine() {
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  const absl::string_view line = text_.substr(at_, end - at_);
  at_ = std::min(end + 1, text_.size());
  return line;
}

absl::Status TextCursor::EndLine() {
  SkipBlanks();
  if (!AtLineEnd()) return Expected("the end of the line");
  RestOfLine();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TextCursor::Number(int64_t max, absl::string_view what) {
  if (Peek() < '0' || Peek() > '9') return Expected(what);
  const TextCursor begin = *this;
  int64_t value = 0;
  for (; Peek() >= '0' && Peek() <= '9'; ++at_) {
    value = value * 10 + (Peek() - '0');
    if (value > max) {
      return begin.Error(absl::StrCat("too large: at most ", max, " here (", what, ")"));
    }
  }
  return value;
}

absl::StatusOr<Action> TextCursor::OneAction() {
  constexpr int64_t kMax16 = std::numeric_limits<int16_t>::max();
  constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();
  Action a;
  PIPELAB_ASSIGN_OR_RETURN(const int64_t stage, Number(kMax16, "a stage, as in 2F5"));
  a.stage = static_cast<int16_t>(stage);
  const absl::string_view letters = "FBIWRSOL";  // in the order of ActionKind
  const size_t kind = AtEnd() ? absl::string_view::npos : letters.find(Peek());
  if (kind == absl::string_view::npos)
    return Expected("one of F, B, I, W, R, S, O, L after the stage");
  a.kind = static_cast<ActionKind>(kind);
  ++at_;
  if (a.kind != ActionKind::kStep) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t m, Number(kMax32, "a micro-batch, as in 2F5"));
    a.micro_batch = static_cast<int32_t>(m);
    if (Take(".")) {
      PIPELAB_ASSIGN_OR_RETURN(const int64_t slice, Number(kMax16, "a slice, as in 2F5.1"));
      a.slice = static_cast<int16_t>(slice);
    }
  }
  if (Take("@")) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t version,
                             Number(kMax16, "a weight version, as in 2F5@3"));
    a.version = static_cast<int16_t>(version);
  }
  return a;
}

absl::Status TextCursor::Expected(absl::string_view what) const {
  const std::string found = AtEnd() ? "the end of the text"
                            : AtLineEnd()
                                ? "the end of the line"
                                : absl::StrCat("'", absl::CEscape(text_.substr(at_, 1)), "'");
  return Error(absl::StrCat("expected ", what, ", found ", found));
}

absl::Status TextCursor::Error(absl::string_view message) const {
  int64_t line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < at_; ++i) {
    if (text_[i] != '\n') continue;
    ++line;
    line_begin = i + 1;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line, ", column ", at_ - line_begin + 1, ": ", message));
}

}  // namespace pipelab
