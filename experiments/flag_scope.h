// Flags for a while, for a program that calls commands more than once.
//
//   const FlagScope scope;                   // no flag is set
//   ParseFlags({"--devices=4"});
//   ...                                      // at the end of the scope flags are as they were
#ifndef PIPELAB_EXPERIMENTS_FLAG_SCOPE_H_
#define PIPELAB_EXPERIMENTS_FLAG_SCOPE_H_

#include <map>
#include <string>

#include "absl/flags/reflection.h"

namespace pipelab {

// One at a time; no other thread may read flags meanwhile.
class FlagScope {
 public:
  FlagScope();
  ~FlagScope();
  FlagScope(const FlagScope&) = delete;
  FlagScope& operator=(const FlagScope&) = delete;

 private:
  const absl::FlagSaver values_;
  std::map<std::string, std::string> set_;  // of the flags' names
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_FLAG_SCOPE_H_
