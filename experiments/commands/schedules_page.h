// docs/schedules.md, made from the catalogue: each scheme's picture, figures and paper; and
// README's table of schemes.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string page, SchedulesPage());
//   PIPELAB_ASSIGN_OR_RETURN(std::string readme, WithSchemeTable(readme_now));
//
// Knows no scheme by name: whatever the catalogue has gets a section. F = I = W = 1 and B = 2
// throughout; pictures and figures come from the simulator. Deterministic.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULES_PAGE_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULES_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

absl::StatusOr<std::string> SchedulesPage();

// The pictures of README, docs/pictures/NAME.svg: file and content.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> SchemePictures();

// A Markdown text with the catalogue's table between the lines "<!-- schemes" and "<!-- end". Name,
// what the scheme does, paper. InvalidArgument where these lines are not there, once each.
absl::StatusOr<std::string> WithSchemeTable(absl::string_view text);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULES_PAGE_H_
