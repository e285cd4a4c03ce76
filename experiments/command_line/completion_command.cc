// pipelab completion: scripts that complete commands, options and names in a shell.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "experiments/command_line/command_list.h"
#include "experiments/command_line/options.h"
#include "experiments/commands/command.h"
#include "experiments/flags/output.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {
namespace {

// What an option does, in a few words, for text in single quotes; `quote` stands for one there.
std::string Brief(absl::string_view help, absl::string_view quote) {
  const absl::string_view first = help.substr(0, help.find_first_of(";:(`[]"));
  return absl::StrReplaceAll(absl::StripAsciiWhitespace(first), {{"'", quote}});
}

// bash splits words at '=', so the option before it is two words back.
std::string Bash() {
  std::string text = absl::StrCat(
      "_pipelab() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} option='' options='' names=''\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '",
      absl::StrJoin(CommandNames(), " "),
      "' -- \"$word\")\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n");
  std::vector<std::string> values;  // "model) names='...' ;;"
  for (const Command& c : Commands()) {
    std::string options;
    for (const OptionText& o : OptionsOf(c)) {
      absl::StrAppend(&options, options.empty() ? "" : " ", "--", o.name, o.has_value ? "=" : "");
      const std::string line =
          absl::StrCat("    --", o.name, ") names='", absl::StrJoin(o.values, " "), "' ;;\n");
      const bool known = std::find(values.begin(), values.end(), line) != values.end();
      if (!o.values.empty() && !known) values.push_back(line);
    }
    absl::StrAppend(&text, "    ", c.name, ") options='", options, "' names='",
                    absl::StrJoin(WordsOf(c), " "), "' ;;\n");
  }
  return absl::StrCat(text,
                      "  esac\n"
                      "  if [[ $word == '=' ]]; then option=${COMP_WORDS[COMP_CWORD - 1]} word=''\n"
                      "  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then "
                      "option=${COMP_WORDS[COMP_CWORD - 2]}\n"
                      "  fi\n"
                      "  [[ -z $option ]] || names=''\n"
                      "  case $option in\n",
                      absl::StrJoin(values, ""),
                      "  esac\n"
                      "  [[ -n $option ]] || names+=\" $options\"\n"
                      "  mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\" || :\n"
                      "    [[ -z $option ]] || compgen -f -- \"$word\")\n"
                      "  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null\n"
                      "}\n"
                      "complete -F _pipelab pipelab\n");
}

std::string Zsh() {
  constexpr char kQuote[] = "'\\''";
  std::string text = "#compdef pipelab\n_pipelab() {\n  local -a commands=(\n";
  for (const Command& c : Commands()) {
    absl::StrAppend(&text, "    '", c.name, ":", Brief(c.summary, kQuote), "'\n");
  }
  absl::StrAppend(&text,
                  "  )\n"
                  "  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
                  "  shift words\n"
                  "  ((CURRENT--))\n"
                  "  case $words[1] in\n");
  for (const Command& c : Commands()) {
    absl::StrAppend(&text, "    ", c.name, ") _arguments");
    for (const OptionText& o : OptionsOf(c)) {
      const std::string values =
          o.values.empty() ? "_files" : absl::StrCat("(", absl::StrJoin(o.values, " "), ")");
      absl::StrAppend(&text, " \\\n      '--", o.name, o.has_value ? "=" : "", "[",
                      Brief(o.help, kQuote), "]",
                      o.has_value ? absl::StrCat(":", o.name, ":", values) : "", "'");
    }
    const std::vector<std::string> names = WordsOf(c);
    if (!names.empty())
      absl::StrAppend(&text, " \\\n      '*:name:(", absl::StrJoin(names, " "), ")'");
    absl::StrAppend(&text, " ;;\n");
  }
  return absl::StrCat(text, "  esac\n}\ncompdef _pipelab pipelab\n");
}

std::string Fish() {
  constexpr char kQuote[] = "\\'";
  std::string text = "complete -c pipelab -e\n";
  for (const Command& c : Commands()) {
    const std::string here = absl::StrCat("-n '__fish_seen_subcommand_from ", c.name, "'");
    absl::StrAppend(&text, "complete -c pipelab -f -n __fish_use_subcommand -a ", c.name, " -d '",
                    Brief(c.summary, kQuote), "'\n");
    const std::vector<std::string> names = WordsOf(c);
    if (!names.empty()) {
      absl::StrAppend(&text, "complete -c pipelab -f ", here, " -a '", absl::StrJoin(names, " "),
                      "'\n");
    }
    for (const OptionText& o : OptionsOf(c)) {
      const std::string values =
          o.values.empty() ? "" : absl::StrCat(" -f -a '", absl::StrJoin(o.values, " "), "'");
      absl::StrAppend(&text, "complete -c pipelab ", here, " -l ", o.name,
                      o.has_value ? absl::StrCat(" -r", values) : "", " -d '",
                      Brief(o.help, kQuote), "'\n");
    }
  }
  return text;
}

}  // namespace

absl::Status CompletionCommand(const Words& words) {
  const std::string shell = words.size() > 1 ? words[1] : "";
  if (words.size() == 2) {
    if (shell == "bash") return WriteOutput("stdout", "-", Bash());
    if (shell == "zsh") return WriteOutput("stdout", "-", Zsh());
    if (shell == "fish") return WriteOutput("stdout", "-", Fish());
  }
  if (shell.empty()) return absl::InvalidArgumentError("completion requires bash, zsh or fish");
  return absl::InvalidArgumentError(
      absl::StrCat("'", words.back(), "': completion takes bash, zsh or fish, one at a time",
                   DidYouMean(words.back(), {"bash", "zsh", "fish"})));
}

}  // namespace pipelab
