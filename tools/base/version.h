// The version that is being worked on; CHANGELOG.md says what has been released. Programs, the
// Python package and installed files have it from here.
//
//   absl::StrCat("pipelab ", kVersion)
#ifndef PIPELAB_TOOLS_BASE_VERSION_H_
#define PIPELAB_TOOLS_BASE_VERSION_H_

namespace pipelab {

constexpr char kVersion[] = "0.5-dev";

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_VERSION_H_
