// The time of a batch through a synchronous pipeline, in closed form: DAPPLE's latency (Fan et al.,
// PPoPP 2021), of stages on consecutive devices.
//
//   // Stages: forward, backward, sum.
//   BatchTime({{1, 2, 0.5}, {1, 2, 0.5}}, /*micro_batches=*/8);
//   PlanBatchTime(problem, plan.stages, TransferKind::kBesideCompute);
//
// Take any stage Q as the one that is never idle. Its first forward begins after those of the
// stages before it, it works on all micro-batches, and then the last backward goes back to each
// stage s before it, which sums its gradients; a stage behind Q did so earlier:
//
//   F_0 + ... + F_Q + (M - 1)(F_Q + B_Q) + max over s of  B_Q + ... + B_s + R_s       s <= Q
//                                                         R_s - B_Q+1 - ... - B_s-1   s > Q
//
// The batch takes the largest of these over Q. (The paper takes one pivot Q, found by a rule; no
// other can be larger than the largest.) Transfers are stages of their own between the others, or,
// where nothing hides them, part of both stages' passes.
#ifndef PIPELAB_PIPELINES_PLANNERS_BATCH_TIME_H_
#define PIPELAB_PIPELINES_PLANNERS_BATCH_TIME_H_

#include <cstdint>
#include <vector>

#include "pipelines/planners/plan.h"
#include "pipelines/planners/plan_problem.h"

namespace pipelab {

// The times of one micro-batch; `sum`: of the gradients over its copies, once a batch.
struct BatchPassTimes {
  double forward = 0, backward = 0, sum = 0;
};

double BatchTime(const std::vector<BatchPassTimes>& stages, int64_t micro_batches);

// The same as stages are put in front of the others, one by one.
class BatchTimeFromEnd {
 public:
  explicit BatchTimeFromEnd(int64_t micro_batches = 1) : others_(micro_batches - 1) {}
  void PutInFront(const BatchPassTimes& stage);

  double time() const { return time_; }
  // Without the sums; what is put in front adds all of its forward and backward to it.
  double pass_time() const { return pass_time_; }
  // Whether nothing that is put in front of both can make this the longer one.
  bool NotAbove(const BatchTimeFromEnd& other) const {
    return time_ <= other.time_ && pass_time_ <= other.pass_time_ && late_ <= other.late_;
  }

 private:
  int64_t others_;
  double time_ = 0, pass_time_ = 0;
  // When the last sum ends, counted from where the stage in front has its last gradient.
  double late_ = -1e300;
};

// Bandwidth and latency between consecutive devices: those of the innermost level that has them all
// in one unit; the flat ones where the problem has no levels.
PlanLevel LevelOfDevices(const PlanProblem& problem, int64_t first, int64_t count);

enum class TransferKind : uint8_t { kBesideCompute, kBetweenPasses };

// The times of one device of a stage whose copies are on consecutive ones from `first`.
BatchPassTimes StagePasses(const PlanProblem& problem, PlanTimes times, double parameter_bytes,
                           int64_t first, int64_t copies);
// The time of a cut's bytes, from one group of consecutive devices to the next.
double TransferTime(const PlanProblem& problem, double bytes, int64_t first, int64_t copies,
                    int64_t next_first, int64_t next_copies);

double PlanBatchTime(const PlanProblem& problem, const std::vector<PlanStage>& stages,
                     TransferKind transfers);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_PLANNERS_BATCH_TIME_H_
