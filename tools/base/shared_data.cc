#include "tools/base/shared_data.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/file.h"
#include "tools/base/process.h"

namespace pipelab {

std::string SharedDataFolder(absl::string_view name) {
  std::vector<std::string> roots;
  if (const char* runfiles = std::getenv("TEST_SRCDIR")) roots.emplace_back(runfiles);
  const absl::StatusOr<std::string> self = OwnProgram();
  if (self.ok()) roots.push_back(absl::StrCat(*self, ".runfiles"));
  roots.emplace_back("..");  // `bazel run`, and a program that another one started from there
  for (const std::string& root : roots) {
    std::string folder = absl::StrCat(root, "/shared_data/shared/", name);
    if (PathExists(folder)) return folder;
  }
  return "";
}

std::string NoSharedData(absl::string_view name) {
  return absl::StrCat("no ", name, " in the folder of PIPELAB_SHARED, or in ../shared beside the ",
                      "checkout (docs/development.md)");
}

}  // namespace pipelab
