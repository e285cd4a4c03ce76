#include "pipelines/planners/batch_time.h"

#include <algorithm>

namespace pipelab {

double BatchTime(const std::vector<BatchPassTimes>& stages, int64_t micro_batches) {
  double longest = 0, forward = 0;
  for (size_t q = 0; q < stages.size(); ++q) {
    forward += stages[q].forward;
    double last = 0;
    double backward = 0;
    for (size_t s = q + 1; s-- > 0;) {
      backward += stages[s].backward;
      last = std::max(last, backward + stages[s].sum);
    }
    double before = 0;
    for (size_t s = q + 1; s < stages.size(); ++s) {
      last = std::max(last, stages[s].sum - before);
      before += stages[s].backward;
    }
    const double others = static_cast<double>(micro_batches - 1);
    longest = std::max(longest, forward + others * (stages[q].forward + stages[q].backward) + last);
  }
  return longest;
}

void BatchTimeFromEnd::PutInFront(const BatchPassTimes& stage) {
  const double pass = stage.forward + stage.backward;
  const double busy = stage.forward + static_cast<double>(others_) * pass;
  pass_time_ = std::max(pass_time_ + pass, busy + stage.backward);
  time_ = std::max({time_ + stage.forward, pass_time_ + stage.sum, busy + late_});
  late_ = std::max(stage.sum, late_ - stage.backward);
}

PlanLevel LevelOfDevices(const PlanProblem& problem, int64_t first, int64_t count) {
  int64_t unit = 1;
  for (const PlanLevel& level : problem.levels) {
    unit *= level.devices;
    if (first / unit == (first + count - 1) / unit) return level;
  }
  if (!problem.levels.empty()) return problem.levels.back();
  return {problem.devices, problem.bandwidth, problem.latency};
}

BatchPassTimes StagePasses(const PlanProblem& problem, PlanTimes times, double parameter_bytes,
                           int64_t first, int64_t copies) {
  double speed = 1;
  if (!problem.device_speeds.empty()) {
    const auto begin = problem.device_speeds.begin() + first;
    speed = *std::min_element(begin, begin + copies);
  }
  BatchPassTimes passes;
  passes.forward = times.forward / speed;
  passes.backward = (times.time - times.forward) / speed;
  if (copies == 1) return passes;
  const PlanLevel level = LevelOfDevices(problem, first, copies);
  const auto m = static_cast<double>(copies);
  passes.sum = 2 * (m - 1) * (parameter_bytes / m / level.bandwidth + level.latency);
  return passes;
}

double TransferTime(const PlanProblem& problem, double bytes, int64_t first, int64_t copies,
                    int64_t next_first, int64_t next_copies) {
  const PlanLevel level = LevelOfDevices(problem, first, next_first + next_copies - first);
  return bytes / static_cast<double>(std::min(copies, next_copies)) / level.bandwidth +
         level.latency;
}

double PlanBatchTime(const PlanProblem& problem, const std::vector<PlanStage>& stages,
                     TransferKind transfers) {
  const int size = static_cast<int>(stages.size());
  std::vector<int> stage_of(problem.size(), -1);
  for (int s = 0; s < size; ++s) {
    for (int v : stages[s].layers) stage_of[v] = s;
  }
  std::vector<BatchPassTimes> all;
  double before = 0;  // the transfer from the stage before
  int64_t first = 0;
  for (int s = 0; s < size; ++s) {
    const PlanStage& stage = stages[s];
    if (stage.first_device >= 0) first = stage.first_device;
    PlanTimes times;
    double parameters = 0, bytes = 0;
    for (size_t i = 0; i < stage.layers.size(); ++i) {
      const PlanVariant& variant =
          problem.operators[stage.layers[i]].variants.at(stage.tensor)[stage.variants[i]];
      PlanTimes t = {variant.forward_time, variant.time};
      if (stage.data > 1) {
        t = TimesOfSamples(
            problem, variant,
            static_cast<double>(problem.micro_batch_size) / static_cast<double>(stage.data));
      }
      times.forward += t.forward;
      times.time += t.time;
      parameters += variant.parameter_bytes;
    }
    for (const PlanOperator& o : problem.operators) {
      bool behind = false, goes_on = false;
      for (int e : o.out_edges) {
        behind |= stage_of[problem.edges[e].from] <= s;
        goes_on |= stage_of[problem.edges[e].to] > s;
      }
      if (behind && goes_on) bytes += o.output_bytes;
    }
    BatchPassTimes passes = StagePasses(problem, times, parameters, first, stage.data);
    double after = 0;
    if (s + 1 < size) {
      const int64_t next =
          stages[s + 1].first_device >= 0 ? stages[s + 1].first_device : first + stage.data;
      after = TransferTime(problem, bytes, first, stage.data, next, stages[s + 1].data);
    }
    if (transfers == TransferKind::kBetweenPasses) {
      passes.forward += before + after;
      passes.backward += before + after;
    }
    all.push_back(passes);
    if (transfers == TransferKind::kBesideCompute && s + 1 < size) all.push_back({after, after, 0});
    before = after;
    first += stage.data;
  }
  return BatchTime(all, problem.micro_batches);
}

}  // namespace pipelab
