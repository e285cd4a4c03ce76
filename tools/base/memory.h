// How much memory this process can still take.
//
//   if (needed > AvailableMemory()) return absl::InvalidArgumentError(...);
//
// The least of what the kernel calls available, what the control groups leave (page cache that can
// be dropped counts as free) and what the limit of the address space (ulimit -v) does. Where none
// of them is known, the largest count there is: nothing is refused for it.
#ifndef PIPELAB_TOOLS_BASE_MEMORY_H_
#define PIPELAB_TOOLS_BASE_MEMORY_H_

#include <string>

#include "tools/base/units.h"

namespace pipelab {

// `root` is in front of /proc and /sys, for tests.
Bytes AvailableMemory(const std::string& root = "");

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_MEMORY_H_
