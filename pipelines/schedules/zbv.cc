// ZB-V (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, section 6): two stages per device
// in a V, split backwards, and the memory of 1F1B. With F = I = W a device never waits from its
// first action to its last.
//
// The order of F and I is the paper's. "Down" is the stage d of device d, "up" the stage 2P-1-d:
// the first micro-batch is back on device d after 2(P-d)-1 slots, which forwards down fill; then
// forwards up and down take turns until its gradient comes; then forwards up are followed by their
// own backwards; then the steady state. W fill what is left, which is where the memory limit of 2P
// stages puts the paper's W too.
//
// With fewer than 2P-1 micro-batches the order is that of 2P-1 without those that do not exist.
// Gaps then close as W move into them: for P <= M the makespan is 6M+P-1, the best there is, as the
// last device cannot start before P-1 and has work for 6M.
#include <algorithm>
#include <utility>
#include <vector>

#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/schemes.h"
#include "pipelines/schedules/v_guides.h"

namespace pipelab {
namespace {

class ZbvOrder {
 public:
  ZbvOrder(int devices, int micro_batches, int device)
      : micro_batches_(micro_batches), down_{device, 0, 0}, up_{2 * devices - 1 - device, 0, 0} {
    const int planned = std::max(micro_batches, 2 * devices - 1);
    for (int i = 0; i < 2 * (devices - device) - 1; ++i) AddForward(&down_);
    for (int i = 0; i < device; ++i) {
      AddForward(&up_);
      AddForward(&down_);
    }
    for (int i = 0; i < devices - device; ++i) {
      AddForward(&up_);
      AddInput(&up_);
    }
    for (int i = 0; i < planned - devices; ++i) {
      AddForward(&down_);
      AddInput(&down_);
      AddForward(&up_);
      AddInput(&up_);
    }
    for (int i = 0; i < device; ++i) {
      AddInput(&down_);
      AddInput(&up_);
    }
    for (int i = 0; i < devices - device; ++i) AddInput(&down_);
  }

  std::vector<Action> actions;

 private:
  struct Chunk {
    int stage, forwards, inputs;
  };
  void AddForward(Chunk* c) {
    const int m = c->forwards++;
    if (m < micro_batches_) actions.push_back(Forward(c->stage, m));
  }
  void AddInput(Chunk* c) {
    const int m = c->inputs++;
    if (m < micro_batches_) actions.push_back(BackwardInput(c->stage, m));
  }

  const int micro_batches_;
  Chunk down_, up_;
};

}  // namespace

int HeldInZbv(const SchemeParams& params) { return 2 * params.devices; }

absl::StatusOr<Schedule> MakeZbv(const SchemeParams& params) {
  Schedule guide = ZigZagPipeline(params);
  for (int d = 0; d < params.devices; ++d) {
    guide.order[d] = ZbvOrder(params.devices, params.micro_batches, d).actions;
  }
  const int max_activations = HeldInZbv(params);
  if (params.times.forward.empty()) {
    FillGapsWithWeights(&guide, max_activations);
    return guide;
  }
  std::vector<Schedule> guides = VGuides(params);
  guides.push_back(std::move(guide));
  return BestOrder(PassLengths::Of(params), max_activations, {*params.for_equal_times}, guides,
                   params.limits);
}

}  // namespace pipelab
