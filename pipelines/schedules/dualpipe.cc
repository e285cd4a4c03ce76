// DualPipe (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2) and DualPipeV, its form
// with one copy of the weights (cut in half and folded into a V).
//
// A device works on two pipelines: DualPipe's two replicas, which run in opposite directions, or
// the two arms of the V. In the steady state a forward of one goes with a full backward of the
// other, so that their communication and computation overlap; split backwards fill the ends. Peak
// activations of a device: P+1 for DualPipe, 2P+1 for DualPipeV.
//
// The published order needs 2P micro-batches. With fewer, it is that of 2P without those that do
// not exist, all backwards are split, and W fill the gaps.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "pipelines/schedules/bidirectional.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"

namespace pipelab {
namespace {

// One device's two pipelines: "near", into which it is the closer to feed, and "far".
class DualPipeOrder {
 public:
  // A stage and its micro-batches [first, first + count).
  struct Pipeline {
    int stage, first, count;
    int forwards = 0, backwards = 0;
  };

  // `position`: how far from the outer end, of `reach` devices up to where the pipelines meet.
  DualPipeOrder(Pipeline near, Pipeline far, int position, int reach)
      : fused_(near.count >= 2 * reach), near_(near), far_(far) {
    const int planned = std::max(near.count, 2 * reach);
    const int to_middle = reach - 1 - position;
    // Fill: forwards until the far pipeline's first micro-batch comes, then both.
    for (int i = 0; i < 2 * to_middle; ++i) AddForward(&near_);
    for (int i = 0; i <= position; ++i) {
      AddForward(&near_);
      AddForward(&far_);
    }
    // The far pipeline's first gradients: W at once, while nothing else can run.
    for (int i = 0; i < to_middle; ++i) {
      AddInput(&far_);
      AddOldestWeight();
      AddForward(&far_);
    }
    // Steady state.
    for (int i = 0; i < planned - 2 * reach + position + 1; ++i) {
      AddForward(&near_);
      AddBackward(&far_);
      AddForward(&far_);
      AddBackward(&near_);
    }
    // No more forwards of the near pipeline, then none at all.
    for (int i = 0; i < to_middle; ++i) {
      AddBackward(&far_);
      AddForward(&far_);
      AddBackward(&near_);
    }
    for (int i = 0; i <= 2 * position + 1; ++i) {
      // Split in the second half, so that gradients go on early and W are left for the drain.
      Pipeline* pipeline = i % 2 == 0 ? &far_ : &near_;
      if (i <= position) {
        AddBackward(pipeline);
      } else {
        AddInput(pipeline);
      }
    }
    for (int i = 0; i < to_middle; ++i) {
      AddOldestWeight();
      AddInput(&near_);
    }
    while (fused_ && weights_ < inputs_.size()) AddOldestWeight();
  }

  std::vector<Action> actions;

 private:
  static bool Exists(const Pipeline& p, int i) { return i < p.count; }
  void AddForward(Pipeline* p) {
    const int i = p->forwards++;
    if (Exists(*p, i)) actions.push_back(Forward(p->stage, p->first + i));
  }
  void AddBackward(Pipeline* p) {
    if (!fused_) return AddInput(p);
    const int i = p->backwards++;
    if (Exists(*p, i)) actions.push_back(Backward(p->stage, p->first + i));
  }
  void AddInput(Pipeline* p) {
    const int i = p->backwards++;
    if (!Exists(*p, i)) return;
    inputs_.push_back(BackwardInput(p->stage, p->first + i));
    actions.push_back(inputs_.back());
  }
  // Nothing where FillGapsWithWeights does it.
  void AddOldestWeight() {
    if (!fused_) return;
    const Action& input = inputs_[weights_++];
    actions.push_back(BackwardWeight(input.stage, input.micro_batch));
  }

  const bool fused_;  // as published; else all split, without W
  Pipeline near_, far_;
  std::vector<Action> inputs_;  // split backwards so far
  size_t weights_ = 0;          // how many of them have their W
};

}  // namespace

absl::StatusOr<Schedule> MakeDualPipe(const SchemeParams& params) {
  const int devices = params.devices, half = params.micro_batches / 2;
  Schedule schedule = LoopedPipeline(params);
  AddUpwardReplica(&schedule);
  for (int m = half; m < params.micro_batches; ++m) {
    schedule.placement.replica_of_micro_batch[m] = 1;
  }
  for (int d = 0; d < devices; ++d) {
    const DualPipeOrder::Pipeline down{d, 0, half}, up{devices - 1 - d, half, half};
    schedule.order[d] = d < devices / 2
                            ? DualPipeOrder(down, up, d, devices / 2).actions
                            : DualPipeOrder(up, down, devices - 1 - d, devices / 2).actions;
  }
  if (half < devices) FillGapsWithWeights(&schedule, devices + 1);
  return schedule;
}

absl::StatusOr<Schedule> MakeDualPipeV(const SchemeParams& params) {
  const int devices = params.devices, micro_batches = params.micro_batches;
  Schedule schedule = ZigZagPipeline(params);
  for (int d = 0; d < devices; ++d) {
    schedule.order[d] =
        DualPipeOrder({d, 0, micro_batches}, {2 * devices - 1 - d, 0, micro_batches}, d, devices)
            .actions;
  }
  if (micro_batches < 2 * devices) FillGapsWithWeights(&schedule, 2 * devices + 1);
  return schedule;
}

}  // namespace pipelab
