// The programs that pipelab is made of. `pipelab` simulates, compares, searches and evaluates;
// pipelab_plan also plans, synthesizes and serves, and neither links kernels; pipelab_train also
// has the commands that train, and pipelab_study the studies. Users see one command, which starts
// the others from where they lie beside it.
//
//   if (absl::optional<OtherProgram> other = ProgramOf(words)) return StartBeside(*other);
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_BESIDE_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_BESIDE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace pipelab {

struct OtherProgram {
  std::string name;                // "pipelab_train"
  std::vector<std::string> words;  // its command line without its name
};

// The other program that a command line is for, `words` being without the program's own name; none:
// this one.
absl::optional<OtherProgram> ProgramOf(absl::Span<const std::string> words);

// Becomes the program, and returns only where that fails: NotFound says where it was looked for and
// how it is built. Started by `bazel run`, it has Bazel build the program first, since it may be
// missing or old.
absl::Status StartBeside(const OtherProgram& program);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_BESIDE_H_
