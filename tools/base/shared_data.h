// Where a test or a study finds inputs that are not part of the project (third_party/shared_data).
//
//   // BUILD: data = shared_data("planner-inputs"), from @shared_data//:defs.bzl
//   const std::string folder = SharedDataFolder("planner-inputs");
//   if (folder.empty()) GTEST_SKIP() << NoSharedData("planner-inputs");
#ifndef PIPELAB_TOOLS_BASE_SHARED_DATA_H_
#define PIPELAB_TOOLS_BASE_SHARED_DATA_H_

#include <string>

#include "absl/strings/string_view.h"

namespace pipelab {

// Among the runfiles of a test, or of a program however it was started. Empty: there is none.
std::string SharedDataFolder(absl::string_view name);

std::string NoSharedData(absl::string_view name);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_SHARED_DATA_H_
