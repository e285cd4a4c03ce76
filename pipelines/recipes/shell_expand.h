// Words of a shell as commands get them: with values for variables, split, and without quotes.
// Private to recipes.
//
//   ShellExpander expander(&state, "--flags=run.sh", decide);
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> words, expander.Fields("\"${A[@]}\" $B"));
//
// A variable that nothing sets, and a command's output, are not known (shell_values.h). Names of
// files are not expanded. Errors: InvalidArgument with the line.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_EXPAND_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_EXPAND_H_

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/recipes/shell_values.h"
#include "pipelines/recipes/shell_words.h"

namespace pipelab {

class ShellExpander {
 public:
  // `decide` says whether what is in doubt holds.
  ShellExpander(ShellState* state, absl::string_view what,
                std::function<absl::StatusOr<bool>(const ShellDoubt&)> decide)
      : state_(*state), what_(what), decide_(std::move(decide)) {}

  // The line of the words that follow.
  void set_line(int line) { line_ = line; }
  int line() const { return line_; }

  absl::StatusOr<std::vector<std::string>> Fields(absl::string_view raw);
  absl::StatusOr<std::string> Text(absl::string_view raw);     // one word, whatever is in it
  absl::StatusOr<std::string> Pattern(absl::string_view raw);  // backslashes before what was quoted
  absl::StatusOr<std::string> Sum(absl::string_view raw);

  // A variable that the script sets in other places alone is empty, and one of none is not known.
  void AddOwn(absl::string_view name) { own_.emplace(name); }
  void ForgetOwn() { reads_files_ = true; }  // another file may set all

  absl::Status Assign(const ShellAssignment& assignment);
  absl::Status AssignValue(absl::string_view name, absl::string_view subscript,
                           const std::string& value);
  // The user's values, which those of the script do not replace.
  void SetGiven(std::set<std::string, std::less<>> names) { given_ = std::move(names); }

  // An error where all that is made is more than a script's.
  absl::Status Charge(size_t work);
  size_t work() const { return work_; }
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ":", line_, ": ", parts...));
  }

 private:
  static constexpr size_t kMostLength = 1 << 16;  // of a word
  static constexpr absl::string_view kSpecial = "@*#?$!-_";
  // What a word becomes.
  struct Output {
    enum class Kind { kFields, kText, kPattern };
    Kind kind = Kind::kFields;
    std::string separators = " \t\n";
    std::vector<std::string> fields;
    std::string word;
    bool has_word = false;
    bool no_elements = false;  // an array without elements was quoted
    bool splits = false;       // in ${X:-...}, whose blanks separate

    void AddQuoted(absl::string_view text) {
      has_word = true;
      for (const char c : text) {
        if (kind == Kind::kPattern && absl::StrContains("*?[]\\", c)) word += '\\';
        word += c;
      }
    }
    void AddSplit(absl::string_view text) {
      if (kind != Kind::kFields) {
        absl::StrAppend(&word, text);
        has_word |= !text.empty();
        return;
      }
      for (size_t i = 0; i < text.size(); ++i) {
        if (absl::StrContains(separators, text[i])) {
          End();
          continue;
        }
        const size_t end = text[i] == kUnknownBegin ? text.find(kUnknownEnd, i) : i;
        absl::StrAppend(&word, text.substr(i, end + 1 - i));
        has_word = true;
        i = end;
      }
    }
    void End() {
      if (has_word) fields.push_back(std::move(word));
      word.clear();
      has_word = false;
    }
  };
  // "${name[subscript]}" and its values.
  struct Parameter {
    absl::string_view text;  // as written
    std::string name, subscript;
    bool length = false, is_list = false, joined = false;
    bool is_set = false;
    bool is_absent = false;  // and no environment sets it
    std::vector<std::string> values;

    bool IsEmpty() const { return values.empty() || (values.size() == 1 && values[0].empty()); }
  };
  absl::Status Walk(absl::string_view raw, bool quoted, Output* out);
  absl::Status TakeDollar(absl::string_view piece, bool quoted, Output* out);
  absl::Status TakeBraces(absl::string_view inner, bool quoted, Output* out);
  absl::StatusOr<bool> TakeDefault(const Parameter& p, absl::string_view* inner, bool quoted,
                                   Output* out);
  absl::StatusOr<Parameter> Read(absl::string_view* inner);
  absl::Status LookUp(Parameter* p);
  absl::Status Slice(absl::string_view range, Parameter* p);
  absl::StatusOr<absl::optional<std::pair<size_t, size_t>>> Bounds(absl::string_view range);
  absl::Status Emit(const Parameter& p, bool quoted, Output* out);
  absl::StatusOr<std::string> Changed(absl::string_view value, absl::string_view change);
  std::string WithoutItself(const std::string& value, absl::string_view name) const;
  bool IsAssociative(absl::string_view name) const;
  absl::StatusOr<std::string> Subscript(absl::string_view name, absl::string_view raw);
  absl::Status Store(absl::string_view name, absl::string_view subscript, const std::string& value);
  absl::Status AssignArray(const ShellAssignment& assignment);
  std::string Unknown(absl::string_view name, absl::string_view text, bool is_list = false) const;

  ShellState& state_;
  const std::string what_;
  const std::function<absl::StatusOr<bool>(const ShellDoubt&)> decide_;
  std::set<std::string, std::less<>> given_, own_;
  bool reads_files_ = false;
  int line_ = 1, depth_ = 0;
  size_t work_ = 0;
};

// Whether the value has the variable itself, as in PATH=$PATH:/x.
bool RefersToItself(const ShellAssignment& assignment);

// As `case` compares: *, ?, [...] and backslashes.
bool MatchesShellPattern(absl::string_view text, absl::string_view pattern);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_EXPAND_H_
