// The words and operators of a shell script, as they are written: quotes, `$` and backslashes stand
// until shell_expand.h. Private to recipes.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto tokens, ReadShellWords("A=(1 2) run \"$A\" >log # all", "f", 1));
//   // `A=(1 2)`, `run`, `"$A"`
//
// Comments, redirections and here-documents are left out. `((...))` is one word, and so is an array
// behind NAME=. Errors: InvalidArgument with the line of what is not closed.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_WORDS_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_WORDS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct ShellToken {
  absl::string_view text;  // of an operator: "\n", "&&", ";;", ...
  int line;
  bool is_word;
};

enum class ShellForm : uint8_t {
  kScript,
  kWordsAlone,  // of an array or a file of options, whose (, | and ; are characters
};

// The tokens point into `text`, whose first line has this number.
absl::StatusOr<std::vector<ShellToken>> ReadShellWords(absl::string_view text,
                                                       absl::string_view what, int line,
                                                       ShellForm form = ShellForm::kScript);

// Behind the quote, escape, ${...} or $(...) that begins at `at`, or behind that character; npos if
// it is not closed, or nested too deeply.
size_t EndOfShellPiece(absl::string_view text, size_t at, int depth = 0);
// Behind the `close` of what is open at `at`.
size_t EndOfShellSpan(absl::string_view text, size_t at, char close, int depth = 0);

// Whether the text is a name of a variable.
bool IsShellName(absl::string_view text);
// How many characters of it a name that begins it has.
size_t ShellNameLength(absl::string_view text);

// The parts of `NAME=value`, `NAME+=value` and `NAME[subscript]=value`.
struct ShellAssignment {
  absl::string_view name, subscript, value;
  bool has_subscript = false, appends = false;
};
bool ParseShellAssignment(absl::string_view word, ShellAssignment* assignment);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_WORDS_H_
