#include "pipelines/checker/check_slices.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pipelab {

absl::StatusOr<double> CheckSlices(const PlanProblem& problem, const Plan& plan) {
  const auto error = [](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("slices: ", parts...));
  };
  if (problem.tokens == 0) return error("the problem has no times of them");
  std::vector<int64_t> sizes = problem.micro_batch_sizes;
  if (sizes.empty()) sizes = {problem.micro_batch_size};
  int64_t samples = 0;
  double sum = 0, longest = 0;
  for (size_t m = 0; m < plan.slices.size(); ++m) {
    const PlanSlices& slices = plan.slices[m];
    const auto size = std::find(sizes.begin(), sizes.end(), slices.micro_batch_size);
    if (size == sizes.end())
      return error("micro-batch ", m, " has ", slices.micro_batch_size, " samples");
    samples += slices.micro_batch_size;
    int64_t before = 0;
    for (int64_t tokens : slices.tokens) {
      if (tokens < 1 || tokens % problem.token_step != 0 || before + tokens > problem.tokens) {
        return error("micro-batch ", m, ": ", tokens, " tokens after ", before, " of ",
                     problem.tokens, ", in steps of ", problem.token_step);
      }
      double slowest = 0;
      for (const PlanStage& stage : plan.stages) {
        double time = 0;
        for (size_t i = 0; i < stage.layers.size(); ++i) {
          const PlanOperator& o = problem.operators[stage.layers[i]];
          const PlanTimes& t = o.slice_times[size - sizes.begin()][tokens / problem.token_step - 1]
                                            [before / problem.token_step];
          time += t.time;
          if (o.variants.at(stage.tensor)[stage.variants[i]].recompute) time += t.forward;
        }
        slowest = std::max(slowest, time);
      }
      sum += slowest;
      longest = std::max(longest, slowest);
      before += tokens;
    }
    if (before != problem.tokens) {
      return error("micro-batch ", m, " has ", before, " of ", problem.tokens, " tokens");
    }
  }
  if (samples != BatchSamples(problem)) {
    return error("of ", samples, " samples, a batch has ", BatchSamples(problem));
  }
  return sum + static_cast<double>(plan.stages.size() - 1) * longest;
}

}  // namespace pipelab
