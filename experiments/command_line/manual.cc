#include "experiments/command_line/manual.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "experiments/command_line/command_list.h"
#include "experiments/command_line/help.h"
#include "experiments/command_line/options.h"
#include "experiments/commands/command.h"
#include "tools/base/version.h"

namespace pipelab {
namespace {

// A line of text that roff leaves as it is.
std::string Roff(absl::string_view text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  const bool control = absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'");
  return absl::StrCat(control ? "\\&" : "", escaped);
}

void AppendOption(const OptionText& o, std::string* page) {
  absl::StrAppend(page, ".TP\n\\fB\\-\\-", Roff(o.name), "\\fR",
                  o.has_value ? "=\\fIVALUE\\fR" : "", "\n", Roff(o.help), "\n");
  if (!o.default_value.empty()) absl::StrAppend(page, Roff(DefaultNote(o)), "\n");
}

}  // namespace

std::string ManualPage() {
  std::string page = absl::StrCat(
      ".TH PIPELAB 1 \"\" \"pipelab ", kVersion, "\"\n.SH NAME\npipelab \\- ",
      "compares pipeline\\-parallel training schemes\n.SH SYNOPSIS\n",
      "\\fBpipelab\\fR \\fICOMMAND\\fR [\\fINAME\\fR] [\\fB\\-\\-option\\fR=\\fIVALUE\\fR ...]\n",
      ".SH COMMANDS\n");
  for (const Command& c : Commands()) {
    absl::StrAppend(&page, ".SS ", Roff(c.name), "\n", Roff(c.summary), "\n.PP\n.RS\npipelab ",
                    Roff(c.example), "\n.RE\n");
    for (const OptionText& o : OptionsOf(c)) AppendOption(o, &page);
  }
  return absl::StrCat(page, ".SH EXIT STATUS\n", Roff(kExitCodes), "\n.SH ENVIRONMENT\n.TP\n",
                      "\\fBNO_COLOR\\fR\n", Roff(kNoColor), "\n");
}

}  // namespace pipelab
