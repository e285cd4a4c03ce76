#include "pipelines/recipes/shell_launch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {
namespace {

// Options that count which a program whose name does not tell has at least.
constexpr int kFewestOptions = 2;
constexpr size_t kMostListed = 12;
constexpr size_t kMostLaunches = 100;
// Commands that print or change what may be a launch.
constexpr absl::string_view kNoLaunchers[] = {"echo", "printf", "cat", "tee", "grep", "sed"};
// Variables that have whole options, by parts of their names.
constexpr absl::string_view kListNames[] = {"ARG", "OPT", "FLAG", "EXTRA", "PARAM", "CONFIG"};
// Modules that launch another program.
constexpr absl::string_view kLaunchers[] = {"torch.distributed.run", "torch.distributed.launch",
                                            "accelerate.commands.launch"};

template <typename Table>
bool Has(const Table& table, absl::string_view word) {
  return std::find(std::begin(table), std::end(table), word) != std::end(table);
}

absl::string_view BaseName(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsTrainingName(absl::string_view program) {
  const std::string name = absl::AsciiStrToLower(BaseName(program));
  return absl::StrContains(name, "train") || absl::StrContains(name, "tune");
}

// "--name=value" has the name "--name"; "" is no option.
absl::string_view OptionName(absl::string_view word) {
  const absl::string_view name = word.substr(0, word.find('='));
  return absl::StartsWith(name, "--") && name.size() > 2 && IsKnown(name) ? name : "";
}

class LaunchFinder {
 public:
  LaunchFinder(const ShellCommand& command, const RoleOf& role_of)
      : words_(command.words), line_(command.line), role_of_(role_of) {}

  absl::optional<ShellLaunch> Find() {
    if (words_.empty() || Has(kNoLaunchers, BaseName(words_[0]))) return absl::nullopt;
    CountOptions();
    bool python = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      const absl::string_view word = words_[i];
      const absl::string_view base = BaseName(word);
      python |= absl::StartsWith(base, "python") || base == "torchrun" || base == "deepspeed";
      const bool file = absl::EndsWith(word, ".py") && word[0] != '-';
      const bool module = i > 0 && python &&
                          (words_[i - 1] == "-m" || words_[i - 1] == "--module") &&
                          !Has(kLaunchers, word);
      if ((file || module) && IsProgram(i)) return LaunchOf(i);
      // A program without such a name stands before its options.
      const absl::string_view name = OptionName(word);
      if (i > 0 && !name.empty() && !IsLaunchers(name) && counting_[i] > counting_[i + 1] &&
          counting_[i] >= kFewestOptions) {
        return LaunchOf(i - 1);
      }
    }
    return absl::nullopt;
  }

 private:
  static bool IsLaunchers(absl::string_view word) {
    const std::string name = absl::StrReplaceAll(OptionName(word), {{"_", "-"}});
    return name == "--nproc-per-node" || name == "--nnodes";
  }

  void CountOptions() {
    counting_.assign(words_.size() + 1, 0);
    known_ = counting_;
    for (size_t i = words_.size(); i-- > 0;) {
      const absl::string_view name = OptionName(words_[i]);
      const OptionRole role = name.empty() ? OptionRole::kUnknown : role_of_(name);
      counting_[i] = counting_[i + 1] + (role == OptionRole::kCounts ? 1 : 0);
      known_[i] = known_[i + 1] + (role == OptionRole::kUnknown ? 0 : 1);
    }
  }

  bool IsProgram(size_t at) const {
    if (counting_[at + 1] >= kFewestOptions) return true;
    if (!IsTrainingName(words_[at])) return false;
    const bool unknown = at + 1 < words_.size() && !IsKnown(words_[at + 1]);
    return unknown || known_[at + 1] > 0;
  }

  ShellLaunch LaunchOf(size_t program) const {
    ShellLaunch launch;
    launch.program = ShownValue(BaseName(words_[program]));
    launch.line = line_;
    std::vector<ShellOption> of_launcher;
    AddShellOptions(
        std::vector<std::string>(words_.begin(), words_.begin() + static_cast<ptrdiff_t>(program)),
        0, &of_launcher);
    for (ShellOption& o : of_launcher) {
      if (!IsLaunchers(o.name)) continue;
      o.values.resize(std::min<size_t>(o.values.size(), 1));
      launch.options.push_back(std::move(o));
    }
    AddShellOptions(words_, program + 1, &launch.options);
    return launch;
  }

  const std::vector<std::string>& words_;
  const int line_;
  const RoleOf& role_of_;
  std::vector<int> counting_, known_;  // options from each word on
};

// A word that may well be several options.
bool MayBeOptions(absl::string_view value) {
  const std::vector<UnknownPart> parts = UnknownParts(value);
  if (parts.size() != 1 || !ShownValue(value, "").empty()) return false;
  const std::string name = absl::AsciiStrToUpper(parts[0].name);
  return parts[0].is_list ||
         std::any_of(std::begin(kListNames), std::end(kListNames),
                     [&](absl::string_view part) { return absl::StrContains(name, part); });
}

// What tells a launch from another in one line: ", --num-layers 8".
std::string OwnOption(const ShellLaunch& launch, const ShellLaunch& other, const RoleOf& role_of) {
  const auto others = other.Counting(role_of);
  for (const auto& [name, values] : launch.Counting(role_of)) {
    const auto found = others.find(name);
    if (launch.line != other.line || (found != others.end() && found->second == values)) continue;
    return ShownValue(absl::StrCat(", ", name, " ", absl::StrJoin(values, " ")));
  }
  return "";
}

}  // namespace

std::map<std::string, std::vector<std::string>> ShellLaunch::Counting(const RoleOf& role_of) const {
  std::map<std::string, std::vector<std::string>> counting;
  for (const ShellOption& o : options) {
    if (role_of(o.name) != OptionRole::kWithoutInfluence) counting[o.name] = o.values;
  }
  return counting;
}

void AddShellOptions(const std::vector<std::string>& words, size_t from,
                     std::vector<ShellOption>* options) {
  bool any = false;
  for (size_t i = from; i < words.size(); ++i) {
    const absl::string_view name = OptionName(words[i]);
    if (!name.empty()) {
      options->push_back({std::string(name), {}});
      any = true;
      if (name.size() < words[i].size()) {
        options->back().values.push_back(words[i].substr(name.size() + 1));
      }
    } else if (any) {
      options->back().values.push_back(words[i]);
    } else if (!IsKnown(words[i])) {
      options->push_back({"", {words[i]}});
    }
  }
}

absl::optional<ShellLaunch> FindShellLaunch(const ShellCommand& command, const RoleOf& role_of) {
  return LaunchFinder(command, role_of).Find();
}

absl::StatusOr<ShellLaunch> ChooseShellLaunch(const std::vector<ShellLaunch>& launches,
                                              absl::string_view what, const std::string& choice,
                                              const RoleOf& role_of) {
  std::vector<const ShellLaunch*> unlike;
  for (const ShellLaunch& l : launches) {
    const auto alike = [&](const ShellLaunch* o) {
      return o->program == l.program && o->Counting(role_of) == l.Counting(role_of);
    };
    if (std::none_of(unlike.begin(), unlike.end(), alike)) unlike.push_back(&l);
    if (unlike.size() > kMostLaunches) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": has more than ", kMostLaunches, " launches"));
    }
  }
  size_t number = 0;
  if (absl::SimpleAtoi(choice, &number) && number >= 1 && number <= unlike.size()) {
    return *unlike[number - 1];
  }
  std::vector<const ShellLaunch*> named;
  std::copy_if(unlike.begin(), unlike.end(), std::back_inserter(named),
               [&](const ShellLaunch* l) { return choice.empty() || l->program == choice; });
  if (named.size() == 1) return *named[0];
  std::string list;
  for (size_t i = 0; i < std::min(unlike.size(), kMostListed); ++i) {
    absl::StrAppend(
        &list, i == 0 ? "" : ", ", i + 1, " ", unlike[i]->program, " (line ", unlike[i]->line,
        OwnOption(*unlike[i], *unlike[i == 0 && unlike.size() > 1 ? 1 : 0], role_of), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--launch", choice.empty() ? "" : "=", choice, ": ", choice.empty() ? "missing; " : "", what,
      " has ", unlike.size(), " launches: ", list, unlike.size() > kMostListed ? ", ..." : "",
      "; give one's number", choice.empty() ? " or program" : ""));
}

std::string FirstFiles(const std::vector<std::string>& files) {
  constexpr size_t kMost = 8;
  const size_t more = files.size() - std::min(files.size(), kMost);
  return absl::StrCat(
      absl::StrJoin(files.begin(), files.end() - static_cast<ptrdiff_t>(more), ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

absl::Status CheckKnown(const std::vector<ShellOption>& options, absl::string_view what,
                        const std::vector<std::string>& other_files, const RoleOf& role_of) {
  std::vector<std::string> faults, values;
  UnknownPart first;
  for (const ShellOption& o : options) {
    const bool counts = o.name.empty() || role_of(o.name) != OptionRole::kWithoutInfluence;
    for (size_t i = 0; i < o.values.size(); ++i) {
      if (IsKnown(o.values[i]) || !(counts || MayBeOptions(o.values[i]))) continue;
      faults.push_back(absl::StrCat(o.name, o.name.empty() ? "" : " ", ShownValue(o.values[i])));
      for (const UnknownPart& part : UnknownParts(o.values[i])) {
        if (first.line == 0) first = part;
        std::string value = absl::StrCat(part.name == "#" ? "1" : part.name, "=...");
        if (!part.name.empty() && !Has(values, value)) values.push_back(std::move(value));
      }
    }
  }
  if (faults.empty()) return absl::OkStatus();
  const bool output = absl::StartsWith(first.text, "$(") || absl::StartsWith(first.text, "`");
  return absl::InvalidArgumentError(absl::StrCat(
      what, ":", first.line, ": ", faults[0], ": ",
      output ? "a command's output, which is not known" : "a variable that the text does not set",
      other_files.empty() ? "" : absl::StrCat(" (", FirstFiles(other_files), ")"),
      faults.size() > 1
          ? absl::StrCat("; so are ", absl::StrJoin(faults.begin() + 1, faults.end(), ", "))
          : "",
      values.empty() ? "; put its value there"
                     : absl::StrCat("; give --set=", absl::StrJoin(values, ","))));
}

}  // namespace pipelab
