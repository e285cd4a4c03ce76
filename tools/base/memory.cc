#include "tools/base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>

namespace pipelab {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// The number behind a word at the begin of a line ("MemAvailable:  123 kB"), or the file's first
// where the word is empty. kUnknown: there is none, as in "max".
int64_t NumberIn(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    if (!word.empty() && (!(words >> first) || first != word)) continue;
    int64_t number = 0;
    return words >> number ? number : kUnknown;
  }
  return kUnknown;
}

int64_t Left(int64_t limit, int64_t used) {
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return std::max<int64_t>(0, limit - used);
}

int64_t LeftInGroup(const std::string& folder, const char* limit, const char* used,
                    const char* cache) {
  const int64_t cached = NumberIn(folder + "/memory.stat", cache);
  const int64_t left = Left(NumberIn(folder + limit, ""), NumberIn(folder + used, ""));
  return left == kUnknown || cached == kUnknown ? left : left + cached;
}

// The process's control group and those around it; in a container its own is the root.
int64_t LeftInGroups(const std::string& root) {
  std::string path;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) == 0) path = line.substr(3);
  }
  int64_t left = LeftInGroup(root + "/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                             "/memory.usage_in_bytes", "total_inactive_file");
  while (true) {
    if (path == "/") path.clear();
    left = std::min(left, LeftInGroup(root + "/sys/fs/cgroup" + path, "/memory.max",
                                      "/memory.current", "inactive_file"));
    if (path.empty()) return left;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

int64_t LeftOfAddressSpace(const std::string& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const int64_t used = NumberIn(root + "/proc/self/status", "VmSize:");
  return Left(static_cast<int64_t>(limit.rlim_cur), used == kUnknown ? used : used * 1024);
}

}  // namespace

Bytes AvailableMemory(const std::string& root) {
  const int64_t kib = NumberIn(root + "/proc/meminfo", "MemAvailable:");
  const int64_t machine = kib == kUnknown ? kib : kib * 1024;
  return Bytes(std::min({machine, LeftInGroups(root), LeftOfAddressSpace(root)}));
}

}  // namespace pipelab
