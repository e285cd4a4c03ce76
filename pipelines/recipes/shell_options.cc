#include "pipelines/recipes/shell_options.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "pipelines/recipes/shell_expand.h"
#include "pipelines/recipes/shell_launch.h"
#include "pipelines/recipes/shell_script.h"
#include "pipelines/recipes/shell_values.h"
#include "pipelines/recipes/shell_words.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kMostText = 1 << 20;
constexpr size_t kMostRuns = 400;
constexpr size_t kMostRunWork = 1 << 24;  // of all together
constexpr size_t kMostNamed = 8;
constexpr size_t kMostArguments = 64;

// A comma in front of a name and "=" separates, and so does a blank that is not quoted.
absl::StatusOr<ShellState> GivenValues(const std::string& set, absl::string_view text) {
  ShellState given;
  const std::string what = absl::StrCat("--set=", set);
  std::string lines = set;
  for (size_t i = 0; i < lines.size(); ++i) {
    const absl::string_view rest = absl::string_view(lines).substr(i + 1);
    const size_t name =
        rest.find_first_not_of("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const bool separates =
        name != 0 && absl::StartsWith(rest.substr(std::min(name, rest.size())), "=");
    if (lines[i] == ',' && separates) lines[i] = '\n';
  }
  ShellExpander expander(&given, what, [](const ShellDoubt&) { return false; });
  PIPELAB_ASSIGN_OR_RETURN(const auto tokens, ReadShellWords(lines, what, 1, ShellForm::kScript));
  for (const ShellToken& token : tokens) {
    ShellAssignment a;
    size_t position = 0;
    const size_t equals = std::min(token.text.find('='), token.text.size());
    if (!token.is_word && token.text == "\n") continue;
    if (absl::SimpleAtoi(token.text.substr(0, equals), &position) && position > 0 &&
        position <= kMostArguments && equals < token.text.size()) {
      for (size_t i = given.arguments.size(); i < position; ++i) {
        given.arguments.push_back(UnknownValue({absl::StrCat(i + 1), 1, absl::StrCat("$", i + 1)}));
      }
      PIPELAB_ASSIGN_OR_RETURN(given.arguments[position - 1],
                               expander.Text(token.text.substr(equals + 1)));
      given.knows_arguments = true;
      continue;
    }
    if (!token.is_word || !ParseShellAssignment(token.text, &a)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": '", token.text, "' must be NAME=VALUE, as in --set=SIZE=small,NODES=4"));
    }
    if (!absl::StrContains(text, a.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": the script has no variable ", a.name));
    }
    PIPELAB_RETURN_IF_ERROR(expander.Assign(a));
  }
  return given;
}

// The first line that is neither empty nor a comment begins with an option.
bool BeginsWithOption(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (!line.empty() && line[0] != '#') return line[0] == '-';
  }
  return false;
}

class ScriptReader {
 public:
  ScriptReader(absl::string_view text, absl::string_view what, const ScriptChoice& choice,
               const RoleOf& role_of, ShellState given)
      : text_(text), what_(what), choice_(choice), role_of_(role_of), given_(std::move(given)) {}

  absl::StatusOr<std::vector<ShellOption>> ReadFile() {
    ShellExpander expander(&given_, what_, [](const ShellDoubt& d) { return d.likely; });
    PIPELAB_ASSIGN_OR_RETURN(const auto tokens,
                             ReadShellWords(text_, what_, 1, ShellForm::kWordsAlone));
    std::vector<std::string> words;
    ShellAssignment assignment;
    for (const ShellToken& token : tokens) {
      expander.set_line(token.line);
      if (!token.is_word) {
        AddShellOptions(std::exchange(words, {}), 0, &options_);
      } else if (words.empty() && ParseShellAssignment(token.text, &assignment)) {
        PIPELAB_RETURN_IF_ERROR(expander.Assign(assignment));
      } else {
        PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> fields, expander.Fields(token.text));
        std::move(fields.begin(), fields.end(), std::back_inserter(words));
      }
    }
    AddShellOptions(words, 0, &options_);
    return Checked({});
  }

  // Reads all ways that the script may take, those with the fewest unlikely choices first.
  absl::StatusOr<std::vector<ShellOption>> ReadScript() {
    std::deque<std::vector<int>> paths = {{}};
    size_t work = 0;
    for (size_t runs = 0; !paths.empty() && deciding_.size() < kMostNamed; ++runs) {
      const std::vector<int> path = std::move(paths.front());
      paths.pop_front();
      const ShellRun run = RunShellScript(text_, what_, given_, path);
      work += run.work;
      if (runs == 0) first_ = run;
      if (runs == kMostRuns || work > kMostRunWork) {
        if (deciding_.empty() && runs > 0) return TooManyConditions();
        break;
      }
      if (!TakeRun(run, path)) continue;
      for (size_t i = path.size(); i < run.choices.size(); ++i) {
        std::vector<int> other = path;
        other.resize(i + 1, 0);
        for (other[i] = 1; other[i] < run.choices[i].alternatives; ++other[i]) {
          if (paths.size() <= kMostRuns) paths.push_back(other);
        }
      }
    }
    if (!deciding_.empty()) return DecidingConditions();
    PIPELAB_RETURN_IF_ERROR(failure_);
    if (!launch_.has_value()) return WithoutLaunch();
    options_ = std::move(launch_->options);
    return Checked(first_.other_files);
  }

 private:
  // Notes the run's launch; false: what counts of it is unlike that of the first one.
  bool TakeRun(const ShellRun& run, const std::vector<int>& path) {
    std::vector<ShellLaunch> launches;
    const ShellCommand* stray = nullptr;
    for (const ShellCommand& command : run.commands) {
      if (auto launch = FindShellLaunch(command, role_of_); launch.has_value()) {
        launches.push_back(*std::move(launch));
      } else if (absl::StartsWith(command.words[0], "--")) {
        stray = &command;
      }
    }
    absl::Status status = run.status;
    absl::StatusOr<ShellLaunch> launch = ShellLaunch();
    if (status.ok()) {
      if (launches.empty()) return true;  // ways without a launch are not meant
      launch = ChooseShellLaunch(launches, what_, choice_.launch, role_of_);
      status = launch.status();
    }
    if (status.ok() && stray != nullptr) {
      status =
          absl::InvalidArgumentError(absl::StrCat(what_, ":", stray->line, ": ", stray->words[0],
                                                  " begins a command; a \\ is missing at the "
                                                  "end of the line before it"));
    }
    const bool first = !launch_.has_value() && failure_.ok();
    if (first && status.ok()) {
      launch_ = *launch;
    } else if (first) {
      failure_ = status;
    } else if (status.ok() ? !launch_.has_value() ||
                                 launch_->Counting(role_of_) != launch->Counting(role_of_)
                           : status.message() != failure_.message()) {
      deciding_.push_back(run.choices[path.size() - 1].doubt);
      return false;
    }
    return true;
  }

  absl::Status DecidingConditions() const {
    std::vector<std::string> values;
    std::set<int> lines;
    for (const ShellDoubt& doubt : deciding_) {
      if (doubt.line != deciding_[0].line) lines.insert(doubt.line);
      for (const std::string& name : doubt.names) {
        const std::string known = absl::StrCat(name == "#" ? "1" : name, "=");
        const bool listed = std::any_of(values.begin(), values.end(), [&](const std::string& v) {
          return absl::StartsWith(v, known);
        });
        if (name.empty() || listed) continue;
        values.push_back(absl::StrCat(known, doubt.example.empty() ? "..." : doubt.example));
      }
    }
    return absl::InvalidArgumentError(absl::StrCat(
        what_, ":", deciding_[0].line, ": '", deciding_[0].text,
        "' decides about options of the launch, and is not known",
        lines.empty() ? "" : absl::StrCat(" (line ", absl::StrJoin(lines, ", "), ", too)"),
        values.empty() ? "; write out the branch that is taken"
                       : absl::StrCat("; give --set=", absl::StrJoin(values, ","))));
  }

  absl::Status TooManyConditions() const {
    std::set<std::string> names;
    for (const ShellChoice& c : first_.choices) {
      if (names.size() < kMostNamed) names.insert(c.doubt.names.begin(), c.doubt.names.end());
    }
    names.erase("");
    names.erase("#");
    return absl::InvalidArgumentError(absl::StrCat(
        what_, ": too many conditions are not known; give --set=NAME=VALUE,... for some of ",
        names.empty() ? "them" : absl::StrJoin(names, ", ")));
  }

  // Options that stand for themselves, or in variables.
  absl::StatusOr<std::vector<ShellOption>> WithoutLaunch() {
    PIPELAB_RETURN_IF_ERROR(first_.status);
    bool others = false;
    for (const ShellCommand& command : first_.commands) {
      const bool option = absl::StartsWith(command.words[0], "--");
      if (option) AddShellOptions(command.words, 0, &options_);
      others |= !option;
    }
    ShellExpander expander(&first_.state, what_, [](const ShellDoubt& d) { return d.likely; });
    std::set<std::string> taken;
    for (const std::string& name : first_.assigned) {
      const ShellVariable* variable = first_.state.Find(name);
      if (others || !options_.empty() || variable == nullptr || !taken.insert(name).second)
        continue;
      const bool list = variable->elements.size() > 1;
      PIPELAB_ASSIGN_OR_RETURN(
          const std::vector<std::string> words,
          expander.Fields(list ? absl::StrCat("\"${", name, "[@]}\"") : absl::StrCat("$", name)));
      if (words.empty() || !absl::StartsWith(words[0], "--")) continue;
      AddShellOptions(words, 0, &variables_options_);
    }
    if (options_.empty()) options_ = std::move(variables_options_);
    const bool empty =
        first_.commands.empty() && first_.assigned.empty() && first_.other_files.empty();
    if (!options_.empty() || empty) return Checked({});
    const std::string others_text = FirstFiles(first_.other_files);
    return absl::InvalidArgumentError(absl::StrCat(
        what_,
        ": no command launches a Python program with options of Megatron-LM, as in torchrun "
        "pretrain_gpt.py --num-layers 32",
        others_text.empty() ? "" : absl::StrCat("; ", others_text, ", which is not read")));
  }

  absl::StatusOr<std::vector<ShellOption>> Checked(const std::vector<std::string>& other_files) {
    PIPELAB_RETURN_IF_ERROR(CheckKnown(options_, what_, other_files, role_of_));
    for (ShellOption& o : options_) {
      for (std::string& value : o.values) value = ShownValue(value);
    }
    options_.erase(std::remove_if(options_.begin(), options_.end(),
                                  [](const ShellOption& o) { return o.name.empty(); }),
                   options_.end());
    return std::move(options_);
  }

  const absl::string_view text_;
  const std::string what_;
  const ScriptChoice& choice_;
  const RoleOf& role_of_;
  ShellState given_;
  ShellRun first_;
  absl::optional<ShellLaunch> launch_;
  absl::Status failure_;
  std::vector<ShellDoubt> deciding_;
  std::vector<ShellOption> options_, variables_options_;
};

}  // namespace

absl::StatusOr<std::vector<ShellOption>> ReadShellOptions(absl::string_view text,
                                                          absl::string_view what,
                                                          const ScriptChoice& choice,
                                                          const RoleOf& role_of) {
  if (text.size() > kMostText) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": is longer than 1 MiB"));
  }
  const std::string script = absl::StrReplaceAll(text, {{"\r\n", "\n"}});
  if (script.find_first_of("\x01\x02") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": is no text"));
  }
  PIPELAB_ASSIGN_OR_RETURN(ShellState given, GivenValues(choice.set, script));
  ScriptReader reader(script, what, choice, role_of, std::move(given));
  return BeginsWithOption(script) ? reader.ReadFile() : reader.ReadScript();
}

}  // namespace pipelab
