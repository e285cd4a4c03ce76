// The problems of `synthesize` where times are given: by options, or in a file (--times).
//
//   PIPELAB_ASSIGN_OR_RETURN(const GivenProblems given, ProblemsOfTimes(config, options));
//   for (const auto& [placement, problem] : given.problems) Synthesize(problem, options.search);
#ifndef PIPELAB_EXPERIMENTS_PLAN_COMMANDS_SYNTHESIS_PROBLEMS_H_
#define PIPELAB_EXPERIMENTS_PLAN_COMMANDS_SYNTHESIS_PROBLEMS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "pipelines/step/step_config.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/step_synthesis.h"
#include "tools/base/units.h"

namespace pipelab {

struct GivenProblems {
  std::vector<std::pair<std::string, SynthesisProblem>> problems;  // with their placements' names
  int64_t nanoseconds_per_unit = 1'000'000;
  std::string unit = "ms";  // empty: the user's own
};

// P and V of the configuration say how many stages there are; a file must have as many, or a
// multiple of P where V is not given. Errors name option, value and what would be right.
absl::StatusOr<GivenProblems> ProblemsOfTimes(const StepConfig& config,
                                              const StepSynthesisOptions& options);

// --memory: bytes, or activations where nothing has bytes. 0: no limit.
absl::StatusOr<Bytes> SynthesisMemory();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PLAN_COMMANDS_SYNTHESIS_PROBLEMS_H_
