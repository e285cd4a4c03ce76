// docs/schedules.md, made from the catalogue: each scheme's picture, figures and paper.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string page, SchedulesPage());
//
// Knows no scheme by name: whatever the catalogue has gets a section. F = I = W = 1 and B = 2
// throughout; pictures and figures come from the simulator. Deterministic.
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULES_PAGE_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULES_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace pipelab {

absl::StatusOr<std::string> SchedulesPage();

// The picture of README, docs/pictures/NAME.svg: file and content.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> SchemePictures();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_SCHEDULES_PAGE_H_
