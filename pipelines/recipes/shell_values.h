// Variables of a shell script, and values of which a part is not known before the run. Private to
// recipes.
//
//   UnknownValue({"SIZE", 3, "$(cat size)"})   // stands in a value: "--save /x/" + ... + "/y"
//   ShownValue(value);                         // "--save /x/$(cat size)/y"
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_VALUES_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_VALUES_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace pipelab {

inline constexpr char kUnknownBegin = '\x01', kUnknownEnd = '\x02';

// What is not known: the variable that could be given a value, and where and how it is written.
struct UnknownPart {
  std::string name;  // empty: no variable has it
  int line = 0;
  std::string text;
  bool is_list = false;  // several words at once, as "${X[@]}" has
};

std::string UnknownValue(const UnknownPart& part);
inline bool IsKnown(absl::string_view value) {
  return value.find(kUnknownBegin) == absl::string_view::npos;
}
std::vector<UnknownPart> UnknownParts(absl::string_view value);
// With what is written, or with `replacement`, in the place of what is not known.
std::string ShownValue(absl::string_view value,
                       absl::optional<absl::string_view> replacement = absl::nullopt);
// Parts without a name, and positional ones, are from now on those of this variable.
std::string NamedValue(absl::string_view value, absl::string_view name);

// A variable without a subscript has the one of "0".
struct ShellVariable {
  std::vector<std::pair<std::string, std::string>> elements;
  bool associative = false, exported = false;

  std::string* Find(absl::string_view subscript);
  const std::string* Find(absl::string_view subscript) const;
  void Set(absl::string_view subscript, std::string value);
  bool operator==(const ShellVariable& o) const { return elements == o.elements; }
};

// A condition that the script alone does not decide.
struct ShellDoubt {
  int line = 0;
  std::string text;                // as it is written
  std::string key;                 // equal doubts are decided equally; empty: the text
  std::vector<std::string> names;  // of the variables that would decide it
  std::string example;             // a value of theirs
  bool likely = false;             // whether it holds where they are empty
};

struct ShellState {
  std::map<std::string, ShellVariable, std::less<>> variables;
  std::vector<std::string> arguments;  // $1 and so on
  bool knows_arguments = false;

  const ShellVariable* Find(absl::string_view name) const;
  size_t bytes() const;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_VALUES_H_
