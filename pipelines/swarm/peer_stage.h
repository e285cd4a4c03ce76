// What a peer computes: one stage of a job, pass by pass, each with all that it needs.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto stage, PeerStage::Create(job, /*stage=*/1));
//   PIPELAB_RETURN_IF_ERROR(stage->Run(pass, &done, &gradient));     // of one micro-batch alone
//   PIPELAB_RETURN_IF_ERROR(stage->Step(sum));                       // of all of the step's
//
// A backward runs its forward again. The same pass gives the same bits on every peer of the stage
// (on machines of one kind), so it does not matter which peer's result counts, nor how often it was
// asked for.
//
// With delayed updates (UpdateRuleOf) the values before the last step are kept where the next
// step's passes compute with them.
//
// One thread at a time. FailedPrecondition: the pass computes with weights that are not here;
// InvalidArgument: it is not what the stage takes. Nothing has changed then.
#ifndef PIPELAB_PIPELINES_SWARM_PEER_STAGE_H_
#define PIPELAB_PIPELINES_SWARM_PEER_STAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/swarm/job.h"

namespace pipelab {

class PeerStage {
 public:
  // At step 0, with the seed's weights.
  static absl::StatusOr<std::unique_ptr<PeerStage>> Create(const swarm::Job& job, int stage);

  ~PeerStage();

  // `gradient` of a backward: of the stage's parameters, from this micro-batch.
  absl::Status Run(const swarm::Pass& pass, swarm::PassDone* done, std::vector<float>* gradient);
  absl::Status Step(absl::Span<const float> gradient);

  int stage() const { return stage_; }
  int64_t step() const { return layers_->training_step(); }  // optimizer steps so far
  int64_t parameters() const { return parameters_; }
  // Values and optimizer state by name, and the older values (safetensors).
  absl::StatusOr<swarm::State> State() const;
  absl::Status SetState(const swarm::State& state);

 private:
  class PassData;
  using ValuesByKey = std::map<std::string, std::vector<float>>;
  PeerStage(const swarm::Job& job, int stage);
  absl::Status Check(const swarm::Pass& pass) const;
  absl::Status RunChecked(const swarm::Pass& pass, swarm::PassDone* done,
                          std::vector<float>* gradient);
  // What the stage has of a training's state, in its order.
  std::vector<StateEntry> Entries() const;
  ValuesByKey Values() const;
  absl::Status SwapOlder();
  absl::StatusOr<std::vector<Tensor>> TensorOf(const swarm::Values& values, int64_t numbers,
                                               const TensorSpec& spec);

  const swarm::Job job_;
  const int stage_;
  SwarmLayout layout_;
  std::unique_ptr<PassData> data_;
  Arena arena_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<LayerStage> layers_;
  int64_t parameters_ = 0;
  ValuesByKey older_;  // before the last step; empty: not needed
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_PEER_STAGE_H_
