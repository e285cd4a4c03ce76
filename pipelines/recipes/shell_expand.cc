#include "pipelines/recipes/shell_expand.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "pipelines/recipes/shell_arithmetic.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostNestedExpansions = 32;
constexpr size_t kMostWork = 1 << 23;  // characters of all words

std::string Unescaped(char c) {
  const size_t at = absl::string_view("ntr").find(c);
  return std::string(1, at == absl::string_view::npos ? c : "\n\t\r"[at]);
}

}  // namespace

absl::Status ShellExpander::Charge(size_t work) {
  work_ += work;
  return work_ <= kMostWork ? absl::OkStatus() : Error("the script does too much to be read");
}

std::string ShellExpander::Unknown(absl::string_view name, absl::string_view text,
                                   bool is_list) const {
  return UnknownValue({std::string(name), line_, std::string(text), is_list});
}

absl::StatusOr<std::vector<std::string>> ShellExpander::Fields(absl::string_view raw) {
  Output out;
  const ShellVariable* separators = state_.Find("IFS");
  if (separators != nullptr && separators->Find("0") != nullptr) {
    out.separators = *separators->Find("0");
  }
  PIPELAB_RETURN_IF_ERROR(Walk(raw, /*quoted=*/false, &out));
  out.End();
  return std::move(out.fields);
}

absl::StatusOr<std::string> ShellExpander::Text(absl::string_view raw) {
  Output out;
  out.kind = Output::Kind::kText;
  PIPELAB_RETURN_IF_ERROR(Walk(raw, /*quoted=*/false, &out));
  return std::move(out.word);
}

absl::StatusOr<std::string> ShellExpander::Pattern(absl::string_view raw) {
  Output out;
  out.kind = Output::Kind::kPattern;
  PIPELAB_RETURN_IF_ERROR(Walk(raw, /*quoted=*/false, &out));
  return std::move(out.word);
}

absl::StatusOr<std::string> ShellExpander::Sum(absl::string_view raw) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string sum, Text(raw));
  const auto get = [&](absl::string_view name) { return Text(absl::StrCat("${", name, "}")); };
  const auto set = [&](absl::string_view name, const std::string& value) {
    const size_t bracket = std::min(name.find('['), name.size());
    const absl::string_view subscript = name.substr(bracket);
    return AssignValue(name.substr(0, bracket),
                       subscript.empty() ? "0" : subscript.substr(1, subscript.size() - 2), value);
  };
  auto value = EvaluateShellSum(sum, get, set);
  if (value.ok() || absl::StartsWith(value.status().message(), what_)) return value;
  return Error(value.status().message());
}

absl::Status ShellExpander::Walk(absl::string_view raw, bool quoted, Output* out) {
  if (depth_ >= kMostNestedExpansions) return Error("a word is nested too deeply");
  ++depth_;
  for (size_t at = 0; at < raw.size();) {
    const size_t end = std::min(EndOfShellPiece(raw, at), raw.size());
    const absl::string_view piece = raw.substr(at, end - at);
    const char c = raw[at];
    at = end;
    if (c == '$') {
      // A name or one of the special characters follows.
      size_t more = 0;
      if (piece.size() == 1) {
        const absl::string_view rest = raw.substr(at);
        more = ShellNameLength(rest);
        const bool one =
            !rest.empty() && (absl::ascii_isdigit(static_cast<unsigned char>(rest[0])) ||
                              absl::StrContains(kSpecial, rest[0]));
        if (more == 0 && one) more = 1;
        if (more == 0 && !quoted && absl::StartsWith(rest, "\"")) continue;  // $"..."
      }
      at += more;
      PIPELAB_RETURN_IF_ERROR(
          TakeDollar(raw.substr(end - piece.size(), at - end + piece.size()), quoted, out));
    } else if (c == '`') {
      out->AddQuoted(Unknown("", piece));
    } else if (c == '\\' && piece.size() > 1) {
      if (piece[1] == '\n') continue;
      const bool kept = quoted && !absl::StrContains("$`\"\\", piece[1]);
      out->AddQuoted(piece.substr(kept ? 0 : 1));
    } else if (c == '"' && piece.size() > 1) {
      const bool before = out->has_word;
      out->no_elements = false;
      PIPELAB_RETURN_IF_ERROR(Walk(piece.substr(1, piece.size() - 2), /*quoted=*/true, out));
      out->has_word |= before || !out->no_elements;
    } else if (c == '\'' && !quoted && piece.size() > 1) {
      out->AddQuoted(piece.substr(1, piece.size() - 2));
    } else if (quoted) {
      at = end - piece.size() + 1;  // a ' in "..." begins nothing
      out->AddQuoted(piece.substr(0, 1));
    } else if (out->splits) {
      out->AddSplit(piece);
    } else {
      absl::StrAppend(&out->word, piece);
      out->has_word = true;
    }
    if (out->word.size() > kMostLength) return Error("a word is too long");
  }
  --depth_;
  return Charge(out->word.size() + 1);
}

absl::Status ShellExpander::TakeDollar(absl::string_view piece, bool quoted, Output* out) {
  if (absl::StartsWith(piece, "$((") && absl::EndsWith(piece, "))")) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string value, Sum(piece.substr(3, piece.size() - 5)));
    out->AddQuoted(value);
  } else if (absl::StartsWith(piece, "$(")) {
    out->AddQuoted(Unknown("", piece));
  } else if (absl::StartsWith(piece, "${")) {
    return TakeBraces(piece.substr(2, piece.size() - 3), quoted, out);
  } else if (absl::StartsWith(piece, "$'")) {
    std::string text;
    for (size_t i = 2; i + 1 < piece.size(); ++i) {
      text += piece[i] == '\\' ? Unescaped(piece[++i]) : std::string(1, piece[i]);
    }
    out->AddQuoted(text);
  } else if (piece.size() > 1) {
    return TakeBraces(piece.substr(1), quoted, out);
  } else {
    out->AddQuoted("$");
  }
  return absl::OkStatus();
}

bool RefersToItself(const ShellAssignment& a) {
  return absl::StrContains(a.value, absl::StrCat("$", a.name)) ||
         absl::StrContains(a.value, absl::StrCat("${", a.name));
}

bool ShellExpander::IsAssociative(absl::string_view name) const {
  const ShellVariable* variable = state_.Find(name);
  return variable != nullptr && variable->associative;
}

absl::StatusOr<std::string> ShellExpander::Subscript(absl::string_view name,
                                                     absl::string_view raw) {
  return IsAssociative(name) ? Text(raw) : Sum(raw);
}

absl::Status ShellExpander::AssignValue(absl::string_view name, absl::string_view subscript,
                                        const std::string& value) {
  const bool is_given = subscript == "0" && given_.count(name) > 0;
  return is_given ? absl::OkStatus() : Store(name, subscript, value);
}

absl::Status ShellExpander::Store(absl::string_view name, absl::string_view subscript,
                                  const std::string& value) {
  if (value.size() > kMostLength) return Error("a word is too long");
  ShellVariable& variable = state_.variables[std::string(name)];
  PIPELAB_RETURN_IF_ERROR(Charge(value.size() + variable.elements.size() + 16));
  variable.Set(subscript, NamedValue(IsKnown(subscript) ? value : subscript, name));
  return absl::OkStatus();
}

absl::Status ShellExpander::Assign(const ShellAssignment& a) {
  // A value of the user's stays, unless it is itself a part of the new one.
  const bool refers = a.appends || RefersToItself(a);
  if (given_.count(a.name) > 0 && !refers) return absl::OkStatus();
  if (absl::StartsWith(a.value, "(") && absl::EndsWith(a.value, ")") && !a.has_subscript) {
    return AssignArray(a);
  }
  std::string key = "0";
  if (a.has_subscript) {
    PIPELAB_ASSIGN_OR_RETURN(key, Subscript(a.name, a.subscript));
  }
  PIPELAB_ASSIGN_OR_RETURN(std::string value, Text(a.value));
  if (refers && state_.Find(a.name) == nullptr) value = WithoutItself(value, a.name);
  const ShellVariable* before = state_.Find(a.name);
  const std::string* old = a.appends && before != nullptr ? before->Find(key) : nullptr;
  if (old != nullptr) value = absl::StrCat(*old, value);
  return Store(a.name, key, value);
}

// What is added to a variable that nothing sets stands alone.
std::string ShellExpander::WithoutItself(const std::string& value, absl::string_view name) const {
  std::string rest = value;
  for (const UnknownPart& part : UnknownParts(value)) {
    if (part.name == name) rest = absl::StrReplaceAll(rest, {{UnknownValue(part), ""}});
  }
  return rest.empty() ? value : rest;
}

absl::Status ShellExpander::AssignArray(const ShellAssignment& a) {
  PIPELAB_ASSIGN_OR_RETURN(
      const std::vector<ShellToken> tokens,
      ReadShellWords(a.value.substr(1, a.value.size() - 2), what_, line_, ShellForm::kWordsAlone));
  ShellVariable array;
  if (const ShellVariable* before = state_.Find(a.name); before != nullptr) array = *before;
  PIPELAB_RETURN_IF_ERROR(Charge(a.value.size() + 16 * array.elements.size()));
  if (!a.appends) array.elements.clear();
  int64_t next = 0, index = 0;
  for (const auto& element : array.elements) {
    if (absl::SimpleAtoi(element.first, &index)) next = std::max(next, index + 1);
  }
  for (const ShellToken& token : tokens) {
    if (!token.is_word) continue;
    const size_t end = token.text[0] == '[' ? EndOfShellSpan(token.text, 1, ']') : 0;
    if (end > 0 && end < token.text.size() && token.text[end] == '=') {
      PIPELAB_ASSIGN_OR_RETURN(const std::string key,
                               Subscript(a.name, token.text.substr(1, end - 2)));
      PIPELAB_ASSIGN_OR_RETURN(const std::string value, Text(token.text.substr(end + 1)));
      PIPELAB_RETURN_IF_ERROR(Charge(array.elements.size()));
      array.Set(key, NamedValue(value, a.name));
      if (absl::SimpleAtoi(key, &index)) next = index + 1;
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> fields, Fields(token.text));
    for (const std::string& f : fields) {
      array.elements.emplace_back(absl::StrCat(next++), NamedValue(f, a.name));
    }
  }
  state_.variables[std::string(a.name)] = std::move(array);
  return absl::OkStatus();
}

}  // namespace pipelab
