// tools/bazel run //experiments:all -- --quick
//
// Runs every study, each into results/NAME, and writes results/RESULTS.md.
#ifndef PIPELAB_EXPERIMENTS_ALL_ALL_H_
#define PIPELAB_EXPERIMENTS_ALL_ALL_H_

#include <string>
#include <vector>

namespace pipelab {

// With the arguments and the exit code of a main. The studies of these names in this order, each a
// process of its own of this program (study_program.cc); "quickstart" is a program beside it.
int RunAllStudies(int argc, char** argv, const std::vector<std::string>& studies);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_ALL_H_
