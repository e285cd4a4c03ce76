// bazel run //experiments:schedule_docs -- --update
//
// Writes docs/schedules.md and README's picture from the catalogue; without --update prints the
// former.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "experiments/commands/schedules_page.h"
#include "experiments/flags/flags.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

ABSL_FLAG(bool, update, false, "write docs/schedules.md and docs/pictures of the checkout");

namespace pipelab {
namespace {

absl::Status Run(const std::vector<std::string>& words) {
  if (!words.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", words[0], "': not an option; the only one is --update"));
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::string page, SchedulesPage());
  if (!absl::GetFlag(FLAGS_update)) {
    std::fputs(page.c_str(), stdout);
    return absl::OkStatus();
  }
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) {
    return absl::InvalidArgumentError(
        "--update=true: works with `bazel run`, which says where the checkout is");
  }
  PIPELAB_ASSIGN_OR_RETURN(const auto pictures, SchemePictures());
  for (const auto& [name, svg] : pictures)
    PIPELAB_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(workspace, name), svg));
  return WriteFileAtomically(JoinPath(workspace, "docs/schedules.md"), page);
}

}  // namespace
}  // namespace pipelab

int main(int argc, char** argv) {
  return pipelab::RunMain(argc, argv, "//experiments:schedule_docs",
                          "Makes docs/schedules.md from the catalogue.", pipelab::Run);
}
