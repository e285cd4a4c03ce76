#include "pipelines/planners/stage_sums.h"

namespace pipelab {

std::vector<int> StageOf(const PlanProblem& problem, const std::vector<PlanStage>& stages) {
  std::vector<int> stage_of(problem.size(), -1);
  for (size_t s = 0; s < stages.size(); ++s) {
    for (int v : stages[s].layers) stage_of[v] = static_cast<int>(s);
  }
  return stage_of;
}

const PlanVariant& VariantIn(const PlanProblem& problem, const PlanStage& stage, size_t place) {
  return problem.operators[stage.layers[place]].variants.at(stage.tensor)[stage.variants[place]];
}

double SamplesOfCopy(const PlanProblem& problem, const PlanStage& stage) {
  if (stage.micro_batch_size == 0) return static_cast<double>(problem.micro_batch_size);
  return static_cast<double>(stage.micro_batch_size) / static_cast<double>(stage.data);
}

double ComputeTime(const PlanProblem& problem, const PlanStage& stage) {
  const double samples = SamplesOfCopy(problem, stage);
  double time = 0;
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    const PlanVariant& variant = VariantIn(problem, stage, i);
    time +=
        stage.micro_batch_size == 0 ? variant.time : TimesOfSamples(problem, variant, samples).time;
  }
  if (stage.micro_batch_size == 0) return time;
  return time * (static_cast<double>(problem.micro_batch_size) / samples);
}

double ParameterBytes(const PlanProblem& problem, const PlanStage& stage) {
  double bytes = 0;
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    bytes += VariantIn(problem, stage, i).parameter_bytes;
  }
  return bytes;
}

}  // namespace pipelab
