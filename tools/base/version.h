// The version of this tree, and the one place where its number stands: programs print it, and the
// Python package, the files of a release and what they install have it from here. A release is the
// commit that sets it. libpipelab.so has its first two numbers in its name, in
// tools/package/BUILD.bazel; packing fails where the two differ.
//
//   absl::StrCat("pipelab ", kVersion)
#ifndef PIPELAB_TOOLS_BASE_VERSION_H_
#define PIPELAB_TOOLS_BASE_VERSION_H_

namespace pipelab {

constexpr char kVersion[] = "0.5.0";

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_VERSION_H_
