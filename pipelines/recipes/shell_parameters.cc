// "${X...}" in words, and patterns.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "pipelines/recipes/shell_expand.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// One past the class "[...]" at the pattern's front; 0: it is none. Sets whether `c` is in it.
size_t MatchClass(absl::string_view pattern, char c, bool* matches) {
  size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  i += negated;
  bool found = false;
  for (const size_t first = i; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > first) {
      *matches = found != negated;
      return i + 1;
    }
    i += pattern[i] == '\\' && i + 1 < pattern.size();
    const bool range = i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']';
    found |= range ? pattern[i] <= c && c <= pattern[i + 2] : pattern[i] == c;
    i += range ? 2 : 0;
  }
  return 0;
}

// How many characters of the pattern match `c`; 0: it does not.
size_t MatchOne(absl::string_view pattern, char c) {
  if (pattern.empty()) return 0;
  if (pattern[0] == '?') return 1;
  bool matches = false;
  if (pattern[0] == '[') {
    if (const size_t end = MatchClass(pattern, c, &matches); end > 0) return matches ? end : 0;
  }
  const size_t escaped = pattern[0] == '\\' && pattern.size() > 1 ? 1 : 0;
  return pattern[escaped] == c ? escaped + 1 : 0;
}

}  // namespace

bool MatchesShellPattern(absl::string_view text, absl::string_view pattern) {
  size_t t = 0, p = 0, star = absl::string_view::npos, behind = 0;
  while (t < text.size()) {
    const bool is_star = p < pattern.size() && pattern[p] == '*';
    const size_t taken = is_star ? 0 : MatchOne(pattern.substr(p), text[t]);
    if (is_star) {
      star = p++;
      behind = t;
    } else if (taken > 0) {
      p += taken;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++behind;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == absl::string_view::npos;
}

// The name and the subscript, with what they stand for.
absl::StatusOr<ShellExpander::Parameter> ShellExpander::Read(absl::string_view* inner) {
  Parameter p;
  p.text = *inner;
  if (inner->size() > 1 && absl::ConsumePrefix(inner, "#")) p.length = true;
  const bool indirect = inner->size() > 1 && absl::ConsumePrefix(inner, "!");
  size_t length = ShellNameLength(*inner);
  if (length == 0) length = std::min(inner->find_first_not_of("0123456789"), inner->size());
  if (length == 0 && !inner->empty() && absl::StrContains(kSpecial, inner->front())) length = 1;
  p.name = std::string(inner->substr(0, length));
  inner->remove_prefix(length);
  if (absl::StartsWith(*inner, "[")) {
    const size_t end = EndOfShellSpan(*inner, 1, ']');
    if (end == absl::string_view::npos) return Error("${", p.text, "}: the [ is not closed");
    p.subscript = std::string(inner->substr(1, end - 2));
    inner->remove_prefix(end);
  }
  const std::string& all = p.subscript.empty() ? p.name : p.subscript;
  p.is_list = all == "@" || all == "*";
  p.joined = all == "*";
  if (!indirect) {
    PIPELAB_RETURN_IF_ERROR(LookUp(&p));
    return p;
  }
  if (p.is_list) {  // the subscripts
    if (const ShellVariable* v = state_.Find(p.name); v != nullptr) {
      p.is_set = true;
      for (const auto& element : v->elements) p.values.push_back(element.first);
    }
    return p;
  }
  PIPELAB_RETURN_IF_ERROR(LookUp(&p));
  if (!p.is_set || !IsKnown(p.values[0])) return p;
  p.name = p.values[0];
  p.values.clear();
  p.is_set = false;
  PIPELAB_RETURN_IF_ERROR(LookUp(&p));
  return p;
}

absl::Status ShellExpander::LookUp(Parameter* p) {
  if (p->name == "@" || p->name == "*") {
    p->values = state_.arguments;
    p->is_set = true;
    return absl::OkStatus();
  }
  if (p->name == "#") {
    if (state_.knows_arguments) p->values = {absl::StrCat(state_.arguments.size())};
    p->is_set = state_.knows_arguments;
    return absl::OkStatus();
  }
  size_t position = 0;
  if (absl::SimpleAtoi(p->name, &position)) {
    p->is_set = position > 0 && position <= state_.arguments.size();
    p->is_absent = !p->is_set && position > 0 && state_.knows_arguments;
    p->values = {p->is_set ? state_.arguments[position - 1] : ""};
    return absl::OkStatus();
  }
  const ShellVariable* v = state_.Find(p->name);
  if (v == nullptr) {
    p->is_absent = !reads_files_ && own_.count(p->name) > 0;
    if (!p->is_list) p->values = {""};
    return absl::OkStatus();
  }
  if (p->is_list) {
    p->is_set = true;
    for (const auto& element : v->elements) p->values.push_back(element.second);
    return absl::OkStatus();
  }
  std::string key = "0";
  if (!p->subscript.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(key, Subscript(p->name, p->subscript));
  }
  if (int64_t index = 0; !v->associative && absl::SimpleAtoi(key, &index) && index < 0) {
    const auto size = static_cast<int64_t>(v->elements.size());  // from the end
    if (index >= -size) key = v->elements[static_cast<size_t>(size + index)].first;
  }
  if (!IsKnown(key)) {
    p->is_set = true;
    p->values = {key};
    return absl::OkStatus();
  }
  const std::string* value = v->Find(key);
  p->is_set = value != nullptr || !p->subscript.empty();
  p->values = {value == nullptr ? "" : *value};
  return absl::OkStatus();
}

// "${X:-word}" and its like; false: it is none of them, or X itself counts.
absl::StatusOr<bool> ShellExpander::TakeDefault(const Parameter& p, absl::string_view* inner,
                                                bool quoted, Output* out) {
  absl::string_view word = *inner;
  const bool colon = absl::ConsumePrefix(&word, ":");
  if (p.length || word.empty() || !absl::StrContains("-=+?", word.front())) return false;
  const char kind = word.front();
  word.remove_prefix(1);
  *inner = "";
  const bool empty = !p.is_set || (colon && p.IsEmpty());
  const auto take_word = [&] {
    const bool before = std::exchange(out->splits, !quoted);
    const absl::Status status = Walk(word, quoted, out);
    out->splits = before;
    return status;
  };
  if (kind == '+') {
    bool holds = !empty;
    const bool may_be_set = !p.is_set && !p.is_absent;
    if (may_be_set || (holds && colon && ShownValue(p.values[0], "").empty())) {
      ShellDoubt doubt;
      doubt.line = line_;
      doubt.text = absl::StrCat("${", p.text, "}");
      doubt.names = {p.name};
      for (const UnknownPart& part : UnknownParts(may_be_set ? "" : p.values[0])) {
        doubt.names = {part.name};
      }
      PIPELAB_ASSIGN_OR_RETURN(holds, decide_(doubt));
    }
    if (holds) PIPELAB_RETURN_IF_ERROR(take_word());
    return true;
  }
  if (!empty || kind == '?') return false;
  if (kind == '=') {
    PIPELAB_ASSIGN_OR_RETURN(const std::string value, Text(word));
    PIPELAB_RETURN_IF_ERROR(AssignValue(p.name, "0", value));
  }
  PIPELAB_RETURN_IF_ERROR(take_word());
  return true;
}

absl::Status ShellExpander::TakeBraces(absl::string_view inner, bool quoted, Output* out) {
  PIPELAB_ASSIGN_OR_RETURN(Parameter p, Read(&inner));
  PIPELAB_RETURN_IF_ERROR(Charge(p.values.size()));
  PIPELAB_ASSIGN_OR_RETURN(const bool done, TakeDefault(p, &inner, quoted, out));
  if (done) return absl::OkStatus();
  if (!p.is_set && !p.is_absent) {
    const bool plain = p.text == p.name;
    const std::string shown = absl::StrCat(plain ? "$" : "${", p.text, plain ? "" : "}");
    p.values = {Unknown(p.name, shown, p.is_list)};
    inner = "";
  } else if (p.length) {
    const bool known = p.is_list || IsKnown(p.values[0]);
    if (known) p.values = {absl::StrCat(p.is_list ? p.values.size() : p.values[0].size())};
    p.is_list = false;
  }
  if (p.is_list && absl::StartsWith(inner, ":")) {
    PIPELAB_RETURN_IF_ERROR(Slice(inner.substr(1), &p));
    inner = "";
  }
  for (std::string& value : p.values) {
    if (inner.empty() || !IsKnown(value)) continue;
    PIPELAB_ASSIGN_OR_RETURN(value, Changed(value, inner));
  }
  return Emit(p, quoted, out);
}

// "${A[@]:1:2}"; arguments are counted from 1.
absl::Status ShellExpander::Slice(absl::string_view range, Parameter* p) {
  PIPELAB_ASSIGN_OR_RETURN(const auto bounds, Bounds(range));
  if (!bounds.has_value()) {
    p->values = {Unknown(p->name, absl::StrCat("${", p->text, "}"), /*is_list=*/true)};
    return absl::OkStatus();
  }
  const size_t first = p->name == "@" || p->name == "*" ? 1 : 0;
  const size_t begin = std::min(std::max(bounds->first, first) - first, p->values.size());
  const size_t count = std::min(bounds->second, p->values.size() - begin);
  const auto from = p->values.begin() + static_cast<ptrdiff_t>(begin);
  p->values = std::vector<std::string>(from, from + static_cast<ptrdiff_t>(count));
  return absl::OkStatus();
}

// "1:2" as where it begins and how much it is; nullopt: not known, or counted from the end.
absl::StatusOr<absl::optional<std::pair<size_t, size_t>>> ShellExpander::Bounds(
    absl::string_view range) {
  const size_t colon = range.find(':');
  PIPELAB_ASSIGN_OR_RETURN(const std::string from, Sum(range.substr(0, colon)));
  std::pair<size_t, size_t> bounds = {0, absl::string_view::npos};
  bool known = absl::SimpleAtoi(from, &bounds.first);
  if (colon != absl::string_view::npos) {
    PIPELAB_ASSIGN_OR_RETURN(const std::string count, Sum(range.substr(colon + 1)));
    known &= absl::SimpleAtoi(count, &bounds.second);
  }
  if (!known) return absl::optional<std::pair<size_t, size_t>>();
  return absl::make_optional(bounds);
}

absl::Status ShellExpander::Emit(const Parameter& p, bool quoted, Output* out) {
  out->no_elements = p.is_list && p.values.empty();
  const bool apart = out->kind == Output::Kind::kFields && !(quoted && p.joined);
  for (size_t i = 0; i < p.values.size(); ++i) {
    if (i > 0 && apart) {
      out->End();
    } else if (i > 0) {
      out->AddQuoted(" ");
    }
    PIPELAB_RETURN_IF_ERROR(Charge(p.values[i].size()));
    if (quoted) {
      out->AddQuoted(p.values[i]);
    } else {
      out->AddSplit(p.values[i]);
    }
    if (out->word.size() > kMostLength) return Error("a word is too long");
  }
  return absl::OkStatus();
}

// Behind the name in "${X%B}", "${X##*/}", "${X,,}", "${X/a/b}" or "${X:2:3}".
absl::StatusOr<std::string> ShellExpander::Changed(absl::string_view value,
                                                   absl::string_view change) {
  const char kind = change[0];
  const bool twice = change.size() > 1 && change[1] == kind;
  const absl::string_view rest = change.substr(twice ? 2 : 1);
  if ((kind == '^' || kind == ',') && twice && rest.empty()) {
    return kind == '^' ? absl::AsciiStrToUpper(value) : absl::AsciiStrToLower(value);
  }
  const std::string unread = Unknown("", absl::StrCat("${...", change, "}"));
  if (kind == ':') {
    PIPELAB_ASSIGN_OR_RETURN(const auto bounds, Bounds(rest));
    if (!bounds.has_value()) return unread;
    return std::string(value.substr(std::min(bounds->first, value.size()), bounds->second));
  }
  const size_t slash = kind == '/' ? std::min(rest.find('/'), rest.size()) : rest.size();
  PIPELAB_ASSIGN_OR_RETURN(const std::string pattern, Pattern(rest.substr(0, slash)));
  PIPELAB_RETURN_IF_ERROR(Charge(value.size() * value.size() * (pattern.size() + 1) / 8));
  if (kind == '/') {
    if (pattern.empty() || pattern.find_first_of("*?[\\#%") != std::string::npos) return unread;
    PIPELAB_ASSIGN_OR_RETURN(const std::string to,
                             Text(rest.substr(std::min(slash + 1, rest.size()))));
    std::string made(value);
    for (size_t at = 0; (at = made.find(pattern, at)) != std::string::npos; at += to.size()) {
      made.replace(at, pattern.size(), to);
      if (!twice) break;
      if (made.size() > kMostLength) return Error("a word is too long");
    }
    return made;
  }
  if (kind != '#' && kind != '%') return unread;
  for (size_t i = 0; i <= value.size(); ++i) {
    const size_t cut = twice ? value.size() - i : i;
    const bool front = kind == '#';
    const absl::string_view part = front ? value.substr(0, cut) : value.substr(value.size() - cut);
    if (!MatchesShellPattern(part, pattern)) continue;
    return std::string(front ? value.substr(cut) : value.substr(0, value.size() - cut));
  }
  return std::string(value);
}

}  // namespace pipelab
