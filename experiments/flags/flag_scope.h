// Flags for a while, for a program that calls commands more than once.
//
//   const FlagScope scope;                   // FlagWasSet of none
//   ParseFlags({"--devices=4"});
//   ...                                      // at the end of the scope flags are as they were
#ifndef PIPELAB_EXPERIMENTS_FLAGS_FLAG_SCOPE_H_
#define PIPELAB_EXPERIMENTS_FLAGS_FLAG_SCOPE_H_

#include <map>
#include <string>

namespace pipelab {

// One at a time; no other thread may read flags meanwhile.
class FlagScope {
 public:
  FlagScope();
  ~FlagScope();
  FlagScope(const FlagScope&) = delete;
  FlagScope& operator=(const FlagScope&) = delete;

 private:
  // absl::FlagSaver would do, but tells the terminal of each flag.
  const std::map<std::string, std::string> values_;
  std::map<std::string, std::string> set_;  // which flags ParseFlags had set
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAGS_FLAG_SCOPE_H_
