#include "pipelines/recipes/shell_values.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pipelab {
namespace {

// Calls `known` and `unknown` with the parts of the value in turn.
template <typename Known, typename Unknown>
void ForEachPart(absl::string_view value, const Known& known, const Unknown& unknown) {
  while (!value.empty()) {
    const size_t begin = std::min(value.find(kUnknownBegin), value.size());
    known(value.substr(0, begin));
    value.remove_prefix(begin);
    if (value.empty()) return;
    const size_t end = value.find(kUnknownEnd);
    const std::vector<absl::string_view> parts =
        absl::StrSplit(value.substr(1, end - 1), absl::MaxSplits(':', 3));
    UnknownPart part;
    part.name = std::string(parts[0]);
    (void)absl::SimpleAtoi(parts[1], &part.line);
    part.is_list = parts[2] == "1";
    part.text = std::string(parts[3]);
    unknown(part);
    value.remove_prefix(end + 1);
  }
}

}  // namespace

std::string UnknownValue(const UnknownPart& part) {
  constexpr size_t kMostShown = 60;
  std::string text = part.text.substr(0, kMostShown);
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](char c) { return c == kUnknownBegin || c == kUnknownEnd; }),
             text.end());
  return absl::StrCat(absl::string_view(&kUnknownBegin, 1), part.name, ":", part.line, ":",
                      part.is_list ? 1 : 0, ":", text, part.text.size() > kMostShown ? "..." : "",
                      absl::string_view(&kUnknownEnd, 1));
}

std::vector<UnknownPart> UnknownParts(absl::string_view value) {
  std::vector<UnknownPart> parts;
  ForEachPart(
      value, [](absl::string_view) {}, [&](const UnknownPart& part) { parts.push_back(part); });
  return parts;
}

std::string ShownValue(absl::string_view value, absl::optional<absl::string_view> replacement) {
  std::string shown;
  ForEachPart(
      value, [&](absl::string_view known) { absl::StrAppend(&shown, known); },
      [&](const UnknownPart& part) { absl::StrAppend(&shown, replacement.value_or(part.text)); });
  return shown;
}

std::string NamedValue(absl::string_view value, absl::string_view name) {
  std::string named;
  ForEachPart(
      value, [&](absl::string_view known) { absl::StrAppend(&named, known); },
      [&](UnknownPart part) {
        const bool has_name =
            !part.name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(part.name[0]));
        if (!has_name) part.name = std::string(name);
        absl::StrAppend(&named, UnknownValue(part));
      });
  return named;
}

const std::string* ShellVariable::Find(absl::string_view subscript) const {
  for (const auto& [key, value] : elements) {
    if (key == subscript) return &value;
  }
  return nullptr;
}

std::string* ShellVariable::Find(absl::string_view subscript) {
  return const_cast<std::string*>(static_cast<const ShellVariable*>(this)->Find(subscript));
}

void ShellVariable::Set(absl::string_view subscript, std::string value) {
  if (std::string* found = Find(subscript); found != nullptr) {
    *found = std::move(value);
  } else {
    elements.emplace_back(std::string(subscript), std::move(value));
  }
}

const ShellVariable* ShellState::Find(absl::string_view name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

size_t ShellState::bytes() const {
  size_t bytes = 0;
  for (const auto& [name, variable] : variables) {
    bytes += name.size() + 32;
    for (const auto& [key, value] : variable.elements) bytes += key.size() + value.size() + 32;
  }
  return bytes;
}

}  // namespace pipelab
