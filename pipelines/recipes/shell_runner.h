// How RunShellScript goes through a script. Private to recipes.
//
// A script is its tokens; a command that is passed over is read like one that runs, with `live`
// false. shell_script.cc has lists, `if` and `case`, shell_loops.cc loops and conditions,
// shell_commands.cc simple commands.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_RUNNER_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_RUNNER_H_

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/recipes/shell_conditions.h"
#include "pipelines/recipes/shell_expand.h"
#include "pipelines/recipes/shell_script.h"
#include "pipelines/recipes/shell_words.h"
#include "tools/base/status_macros.h"

namespace pipelab {

inline bool IsOneOf(absl::string_view word, std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Commands that leave the script's variables and its path alone.
bool IsIdleShellCommand(absl::string_view word);

inline constexpr int kMostShellTurns = 1000;  // of a loop
inline constexpr int kMostNestedTexts = 8;    // of functions, eval and bash -c

class ScriptRunner {
 public:
  ScriptRunner(absl::string_view what, const ShellState& given, const std::vector<int>& path);
  ShellRun Run(absl::string_view text);

 private:
  struct Source {
    std::string text;
    std::vector<ShellToken> tokens;
  };
  struct Place {
    std::shared_ptr<const Source> source;
    size_t at = 0;
  };
  struct Range {
    size_t begin, end;
  };
  enum class Flow { kGo, kBreak, kContinue, kReturn, kExit };
  // How a command ended; unknown: `doubt` holds, or, if inverted, does not.
  struct Outcome {
    absl::optional<bool> holds = true;
    bool inverted = false;
    ShellDoubt doubt;
  };

  // Tokens.

  bool AtEnd() const { return place_.at >= place_.source->tokens.size(); }
  const ShellToken& Token(size_t at) const { return place_.source->tokens[at]; }
  const ShellToken& Token() const { return Token(place_.at); }
  bool AtOperator(std::initializer_list<absl::string_view> operators) const;
  bool AtWord(absl::string_view word) const;
  bool TakeWord(absl::string_view word);
  void SkipLines();
  bool AtClose() const;
  absl::Status NotUnderstood();
  absl::Status Expect(absl::string_view text);
  std::string Written(Range range) const;
  bool BeginsCommand(Range range, size_t at) const;
  bool IsIdleRange(Range range) const;
  bool EndsScript(Range range) const;

  // What is in doubt.

  absl::StatusOr<int> Choose(const ShellDoubt& doubt, int alternatives);
  absl::StatusOr<bool> Decide(const ShellDoubt& doubt);
  absl::StatusOr<bool> Holds();
  void SetOutcome(bool holds);
  void SetDoubt(ShellDoubt doubt, Range range);

  // Grammar. Where `live` is false, it is passed over.

  bool Goes(bool live) const { return live && flow_ == Flow::kGo; }
  absl::Status RunText(std::string text, int line);

  template <typename Function>
  absl::Status RunPlace(Place place, const Function& function) {
    std::swap(place_, place);
    ++nested_texts_;
    const absl::Status status = function();
    --nested_texts_;
    std::swap(place_, place);
    return status;
  }

  absl::Status RunAt(size_t begin);

  template <typename Function>
  absl::Status Subshell(const Function& function) {
    PIPELAB_RETURN_IF_ERROR(expander_.Charge(state_.bytes()));
    ShellState saved = state_;
    const absl::Status status = function();
    state_ = std::move(saved);
    flow_ = Flow::kGo;
    return status;
  }

  absl::Status List(bool live);
  absl::Status AndOr(bool live);
  absl::StatusOr<bool> RunsNext(bool is_and);
  absl::Status Pipeline(bool live);
  absl::Status Command(bool live);
  absl::Status AnyCommand(bool live);
  absl::Status Function(bool live);
  absl::Status If(bool live);
  absl::StatusOr<Range> SkipList();

  struct CaseClause {
    std::vector<absl::string_view> patterns;
    Range body;
  };
  absl::Status Case(bool live);
  absl::StatusOr<bool> Matches(const std::string& word, const CaseClause& clause);
  absl::Status DoubtfulCase(const std::string& word, const std::vector<CaseClause>& clauses,
                            Range written);

  // Loops.

  bool Continues();
  absl::Status TooManyTurns();
  absl::Status While(bool live);
  absl::Status DoubtfulLoop(Range body, int line);
  absl::Status For(bool live);
  absl::Status CountingLoop(absl::string_view sums, Range body);

  // Conditions.

  absl::Status DoubleBrackets(bool live);
  absl::Status SetCondition(const std::vector<ConditionWord>& words, Range range);
  absl::Status SumCommand(bool live);

  // Simple commands.

  absl::Status Simple(bool live);
  absl::StatusOr<std::vector<std::string>> Expanded(const std::vector<absl::string_view>& raws);
  absl::Status AssignAll(Range range);
  absl::Status AssignOne(absl::string_view raw);
  absl::Status Declare(Range range);
  absl::Status Execute(const std::vector<std::string>& words, Range range, Range prefix);
  absl::Status Brackets(const std::vector<std::string>& words, Range range);
  absl::Status Call(const Place& function, const std::vector<std::string>& words);
  void SetArguments(const std::vector<std::string>& words);
  absl::Status Forget(const std::vector<std::string>& words);
  std::string Reread(absl::string_view text);
  absl::Status RunProgram(const std::vector<std::string>& words, Range prefix);
  const std::string what_;
  const std::vector<int>& path_;
  ShellState state_;
  ShellExpander expander_;
  ShellRun run_;
  Place place_;
  Flow flow_ = Flow::kGo;
  int loops_left_ = 0;  // that break or continue is for
  Outcome outcome_;
  std::map<std::string, int> decided_;
  std::map<std::string, Place, std::less<>> functions_;
  std::vector<std::map<std::string, absl::optional<ShellVariable>>> locals_;
  int nested_ = 0, nested_texts_ = 0, rereads_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_RUNNER_H_
