// Where a test finds inputs that are not part of the project (third_party/shared_data).
//
//   // BUILD: data = shared_data("planner-inputs"), from @shared_data//:defs.bzl
//   const std::string folder = SharedDataFolder("planner-inputs");
//   if (folder.empty()) GTEST_SKIP() << NoSharedData("planner-inputs");
#ifndef PIPELAB_TOOLS_BASE_SHARED_DATA_H_
#define PIPELAB_TOOLS_BASE_SHARED_DATA_H_

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/base/file.h"

namespace pipelab {

// Empty: there is none.
inline std::string SharedDataFolder(absl::string_view name) {
  const char* runfiles = std::getenv("TEST_SRCDIR");
  if (runfiles == nullptr) return "";
  std::string folder = absl::StrCat(runfiles, "/shared_data/shared/", name);
  return PathExists(folder) ? folder : "";
}

inline std::string NoSharedData(absl::string_view name) {
  return absl::StrCat("no ", name, " in the folder of PIPELAB_SHARED, or in ../shared beside the ",
                      "checkout (docs/development.md)");
}

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_SHARED_DATA_H_
