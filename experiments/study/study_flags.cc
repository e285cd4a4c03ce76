#include "experiments/study/study_flags.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pipelab {
namespace {

// For each file the flags that are not options yet. Made by the first flag, whichever it is.
std::map<std::string, std::vector<void (*)()>>& NotedFlags() {
  static auto* noted = new std::map<std::string, std::vector<void (*)()>>;
  return *noted;
}

}  // namespace

StudyFlagNote::StudyFlagNote(const char* file, void (*register_flag)()) {
  NotedFlags()[file].push_back(register_flag);
}

void RegisterStudyFlags(absl::string_view file) {
  const auto found = NotedFlags().find(std::string(file));
  if (found == NotedFlags().end()) return;
  for (void (*register_flag)() : std::exchange(found->second, {})) register_flag();
}

}  // namespace pipelab
