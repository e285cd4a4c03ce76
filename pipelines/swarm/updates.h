// When micro-batches may begin, and which gradients an optimizer step has: SWARM's delayed
// parameter updates (Ryabinin et al., arXiv 2301.11913; Ren et al., arXiv 2101.06840), with each
// gradient counted once.
//
//   StepLedger ledger(/*step=*/256, /*stages=*/4, UpdateRule{/*delay=*/1});
//   if (ledger.MayBegin()) micro_batch = ledger.Begin();
//   ledger.Count(stage, micro_batch);                 // a peer has added its gradient
//   ledger.Lose(stage, micro_batch);                  // and is gone: ask for it again
//   if (ledger.MayAverage()) { step = ledger.BeginAverage(); ...  ledger.EndAverage(); }
//
// A step is so many micro-batches that follow one another. Its gradients are averaged inside each
// stage when it has all of all stages; then all peers step. With delay 0 the next step's
// micro-batches wait for that. With delay 1 they begin with weights that are one step old, while
// the averages are on their way. Each step has one version of the weights, whenever its passes run.
//
// A gradient that is counted twice, or lost without having been counted, is a broken invariant:
// CHECKed.
#ifndef PIPELAB_PIPELINES_SWARM_UPDATES_H_
#define PIPELAB_PIPELINES_SWARM_UPDATES_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace pipelab {

struct UpdateRule {
  int64_t delay = 0;  // steps, at least 0
  // Steps whose number is a multiple of this wait for the newest weights, and none after them has
  // older ones, so that a checkpoint made then needs no others; 0: step 0 alone.
  int64_t fresh_every = 0;

  // The version of the weights that a step computes with: how many steps' gradients are in it.
  constexpr int64_t VersionOf(int64_t step) const {
    const int64_t fresh = fresh_every > 0 ? step - step % fresh_every : 0;
    return std::max(fresh, step - delay);
  }
  // `averaged`: how many steps' gradients have been averaged.
  constexpr bool MayBegin(int64_t step, int64_t averaged) const {
    return VersionOf(step) <= averaged;
  }
};

class StepLedger {
 public:
  // `step` in micro-batches; 0: no steps, all may begin and nothing is counted.
  StepLedger(int64_t step, int stages, UpdateRule rule)
      : step_(step), stages_(stages), rule_(rule) {}

  bool MayBegin() const { return step_ == 0 || rule_.MayBegin(next_ / step_, averaged_); }
  int64_t Begin();  // the micro-batch
  void Count(int stage, int64_t micro_batch);
  void Lose(int stage, int64_t micro_batch);

  // The step of the next micro-batch; needs steps.
  int64_t next_step() const { return next_ / step_; }

  // All gradients of the next step are there, and no other step is being averaged.
  bool MayAverage() const;
  int64_t BeginAverage();  // the step; what is lost from here on is no longer its
  void EndAverage();

  int64_t averaged() const { return averaged_; }  // steps
  bool IsOf(int64_t micro_batch, int64_t step) const { return micro_batch / step_ == step; }

 private:
  struct Step {
    std::vector<bool> counted;  // [micro-batch of the step * stages + stage]
    int64_t missing = 0;
  };
  std::vector<bool>::reference Counted(int stage, int64_t micro_batch);

  int64_t step_;
  int stages_;
  UpdateRule rule_;
  int64_t next_ = 0, averaged_ = 0;
  bool averaging_ = false;
  std::map<int64_t, Step> steps_;  // begun, and not being averaged
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_UPDATES_H_
