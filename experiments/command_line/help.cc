#include "experiments/command_line/help.h"

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/command_line/command_list.h"
#include "experiments/command_line/manual.h"
#include "experiments/command_line/options.h"
#include "experiments/command_line/topics.h"
#include "experiments/flags/output.h"
#include "tools/base/did_you_mean.h"

ABSL_FLAG(bool, man, false, "prints the manual page: pipelab help --man | man -l -");

namespace pipelab {

namespace {

const Topic* FindTopic(absl::string_view name) {
  for (const Topic& t : Topics()) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

absl::Status NoSuchHelp(absl::string_view name) {
  const std::vector<std::string> names = WordsOf(**FindCommand("help"));
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': no such command or topic",
                                                 NearestOrAll(name, {names.begin(), names.end()})));
}

}  // namespace

absl::StatusOr<const Command*> FindCommand(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Command& c : Commands()) {
    if (c.name == name) return &c;
    names.push_back(c.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "': no such command", NearestOrAll(name, names)));
}

std::string Overview() {
  std::string text = "Makes, checks, times, draws and runs pipeline schedules. Commands:\n";
  for (const Command& c : Commands()) {
    absl::StrAppend(&text, "\n  ", c.name, ": ", c.summary, "\n      pipelab ", c.example, "\n");
  }
  absl::StrAppend(&text, "\nTopics:\n");
  for (const Topic& t : Topics()) absl::StrAppend(&text, "\n  ", t.name, "  ", t.summary);
  return absl::StrCat(text,
                      "\n\n`pipelab help TOPIC` explains one, `pipelab help COMMAND` lists a "
                      "command's options. A file is --csv=FILE, --json=FILE or "
                      "--text=FILE instead of a scheme's name. Exit codes: ",
                      kExitCodes, "\n");
}

std::string HelpOf(const Command& c) {
  std::string text = absl::StrCat(c.name, ": ", c.summary, "\n\n  pipelab ", c.example, "\n\n");
  for (const OptionText& o : OptionsOf(c)) {
    const std::string note = DefaultNote(o);
    absl::StrAppend(&text, "  --", o.name, note.empty() ? "" : " ", note, "\n      ", o.help, "\n");
  }
  return text;
}

absl::Status HelpCommand(const Words& words) {
  if (words.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[2], "': help takes the name of one command or topic"));
  }
  const bool man = absl::GetFlag(FLAGS_man);
  if (words.size() < 2) return WriteOutput("stdout", "-", man ? ManualPage() : Overview());
  if (man) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[1], "': help --man is one page of all commands"));
  }
  if (const Topic* topic = FindTopic(words[1])) return WriteOutput("stdout", "-", topic->text());
  const absl::StatusOr<const Command*> command = FindCommand(words[1]);
  if (!command.ok()) return NoSuchHelp(words[1]);
  return WriteOutput("stdout", "-", HelpOf(**command));
}

}  // namespace pipelab
