#include <algorithm>

#include "pipelines/planners/copies_search.h"
#include "pipelines/planners/piper_search.h"
#include "pipelines/planners/plan_costs.h"

namespace pipelab {
namespace {

constexpr int64_t kMostCopies = 256;
constexpr int64_t kMostEntries = 40'000'000;

int64_t MostCopies(const PiperCosts& costs, const PlanProblem& problem) {
  return std::min(problem.devices / costs.degrees()[0], problem.micro_batches);
}

// The costs of plans with the only degree.
class PiperCopyCosts : public SequenceCosts {
 public:
  using Stage = PiperStage;

  PiperCopyCosts(const PiperCosts& costs, double room) : costs_(costs), room_(room) {}
  const Downsets& sets() const { return costs_.sets(); }
  const std::vector<int>& copies() const { return costs_.copies(); }
  double room() const { return room_; }
  double Work(int set) const { return costs_.Work(set) / costs_.degrees()[0]; }
  double WorkAbove(int set) const { return costs_.WorkAbove(set) / costs_.degrees()[0]; }
  bool Sum(int set, int later, Stage* stage) const { return costs_.Sum(set, later, 0, stage); }
  bool Finish(int set, int later, Stage* stage) const {
    return costs_.Finish(set, later, 0, stage);
  }
  RecomputeTime Recompute(int set, int later, const Stage& stage, int64_t y) const {
    return costs_.Recompute(set, later, 0, stage, y);
  }
  double ExactRecompute(int set, int later, const Stage& stage, int64_t y,
                        const RecomputeTime& time) const {
    return costs_.ExactRecompute(set, later, 0, stage, y, time);
  }

 private:
  const PiperCosts& costs_;
  const double room_;
};

}  // namespace

bool SuitsPiperByCopies(const PiperCosts& costs, const PlanProblem& problem) {
  if (!costs.uniform() || costs.degrees().size() != 1) return false;
  const int64_t copies = MostCopies(costs, problem);
  return copies <= kMostCopies && copies * costs.sets().size() <= kMostEntries;
}

PiperResult PiperByCopies(const PiperCosts& piper, const PlanProblem& problem, double upper,
                          absl::Time deadline) {
  const PiperCopyCosts costs(piper, problem.memory_bytes * (1 + 1e-12));
  CopiesSearch<PiperCopyCosts> search(costs, static_cast<int>(MostCopies(piper, problem)), upper);
  const CopiesResult found = search.Run(deadline);
  PiperResult result;
  result.stopped = found.stopped;
  result.lower_bound = found.stages.empty() ? upper : found.value;
  for (const CopiesStage& s : found.stages) {
    result.stages.push_back(MakePiperStage(piper, s.set, s.later, 0, s.copies,
                                           (s.copies_and_behind + s.copies - 1) / s.copies));
  }
  piper.Rearrange(&result.stages);
  if (!found.stages.empty()) {
    result.value = PlanValue(problem, PlanObjective::kStageTime, result.stages);
  }
  return result;
}

}  // namespace pipelab
