// The options of a command as --help, shell completion and the manual page show them: one table.
//
//   for (const OptionText& o : OptionsOf(command)) absl::StrAppend(&text, o.name, ": ", o.help);
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_OPTIONS_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "experiments/commands/command.h"

namespace pipelab {

struct OptionText {
  absl::string_view name;
  std::string default_value;  // as this command has it; may be words; empty: none
  std::string help;
  bool has_value = true;            // false: --NAME and --noNAME
  std::vector<std::string> values;  // all names that it takes; empty: a file or anything
};

// All names that an option takes, such as those of --model; empty: it takes no names.
std::vector<std::string> ValuesOf(absl::string_view option);

std::vector<OptionText> OptionsOf(const Command& command);
std::string DefaultNote(const OptionText& option);  // "(default 4)", "(required)" or ""

std::vector<std::string> CommandNames();

// What may follow the command's name: schemes, commands, topics, what `list` lists; empty: options
// alone.
std::vector<std::string> WordsOf(const Command& command);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_OPTIONS_H_
