// The ranks of a training that are in this process: memory, kernels, communicator and stages of
// each. They follow one another.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto devices, TrainingDevices::Create(plan, batches, options));
//   Executor::Create(&plan.program, devices->TakeSetups(), executor_options);
//
// Errors: InvalidArgument for ranks that do not divide among the processes, or that a transport
// cannot serve.
#ifndef PIPELAB_PIPELINES_RUNTIME_TRAINING_DEVICES_H_
#define PIPELAB_PIPELINES_RUNTIME_TRAINING_DEVICES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/layers/communicator_peers.h"
#include "pipelines/fill/fill_runner.h"
#include "pipelines/runtime/chained_stage.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/slice_exchanger.h"
#include "pipelines/runtime/step_loss.h"
#include "pipelines/runtime/training.h"
#include "pipelines/runtime/training_plan.h"

namespace pipelab {

class TrainingDevices {
 public:
  // `plan` and `batches` must outlive the devices.
  static absl::StatusOr<std::unique_ptr<TrainingDevices>> Create(const TrainingPlan& plan,
                                                                 const BatchSource& batches,
                                                                 const TrainingOptions& options);

  std::vector<DeviceSetup> TakeSetups() { return std::move(setups_); }
  // Null: all ranks are in this process.
  ProcessGroup* processes() const { return processes_; }
  absl::Duration exchange_limit() const { return exchange_limit_; }  // after a step
  bool collectives_at_wait() const { return collectives_at_wait_; }  // CostTable's
  // With its place among the copies of the stage.
  const std::vector<std::pair<int64_t, const LayerStage*>>& loss_stages() const {
    return loss_stages_;
  }

  // Loads in the last step, on the ranks here, with each token's choices once.
  LoadsOfLayers TakeLoads() const;

  int first_rank() const { return first_rank_; }
  void BeginStep() const;
  std::vector<LayerStage*> Stages() const;
  std::vector<ComputeDevice::Counts> Counts() const;
  std::vector<FillReport> FillReports() const;

 private:
  // One rank's memory, kernels and stages. Its thread is the executor's.
  struct Device {
    explicit Device(const ComputeDevice& on)
        : counts(on.counts),
          begin_step(on.begin_step),
          arena(on.memory),
          backend(on.make_backend(&arena)) {}

    const std::function<ComputeDevice::Counts()> counts;
    const std::function<void()> begin_step;

    Arena arena;
    const std::unique_ptr<Backend> backend;
    std::unique_ptr<CommunicatorPeers> peers;  // null where it computes alone
    // The groups of its stages that have batch normalisations and several devices.
    std::vector<std::unique_ptr<CommunicatorPeers>> copies;
    // The groups of its stages that have the other tokens of the same samples, or the other
    // experts.
    std::vector<std::unique_ptr<CommunicatorPeers>> context;
    std::unique_ptr<SliceExchanger> exchange;  // null: its passes exchange no attention
    std::vector<std::unique_ptr<LayerStage>> stages;
    std::vector<std::unique_ptr<ChainedStage>> chained;  // around these, where they are a chain

    // Other jobs, which have an arena of their own on the same memory.
    std::unique_ptr<Arena> fill_arena;
    std::unique_ptr<Backend> fill_backend;
    std::unique_ptr<FillRunner> fill;
  };

  TrainingDevices(const TrainingPlan& plan, const BatchSource& batches,
                  const TrainingOptions& options)
      : plan_(plan), batches_(batches), options_(options) {}

  absl::Status MakeDevices();
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, std::vector<ComputeDevice>* computes);
  absl::Status MakeExchangers(const std::vector<ComputeDevice>& computes);
  InProcessOptions InProcessOf(const std::vector<ComputeDevice>& computes) const;
  absl::Status MakeStages();
  absl::Status MakeFills(const std::vector<ComputeDevice>& computes);
  absl::Status MakeStage(const ModelGraph& part, int t, int first, int each, int replica,
                         int stage);
  LayerStageOptions StageOptions(int replica, int stage, size_t member) const;
  TensorPeers* CopiesOf(Device* device, int rank, int t, const std::vector<int>& group);
  // Ranks t of the `together` devices that follow one another and have the member among them;
  // `whole`: all of their ranks.
  TensorPeers* MeetingOf(Device* device, int rank, int t, const std::vector<int>& group,
                         size_t member, size_t together, bool whole);
  std::unique_ptr<CommunicatorPeers> PeersOf(int rank, std::vector<int> ranks);
  ChainEdges ChainEdgesOf(int stage, const LayerStageOptions& options) const;
  Device* DeviceOf(int rank) const;
  std::vector<int> TensorRanks(int device) const;
  int RankOf(int device, int t) const { return device * static_cast<int>(plan_.split.degree) + t; }

  const TrainingPlan& plan_;
  const BatchSource& batches_;
  const TrainingOptions options_;
  ProcessGroup* processes_ = nullptr;
  absl::Duration exchange_limit_;
  bool collectives_at_wait_ = false;
  int first_rank_ = 0;                            // of this process
  std::vector<std::unique_ptr<Device>> devices_;  // [rank - first_rank_]
  std::vector<DeviceSetup> setups_;
  std::vector<std::pair<int64_t, const LayerStage*>> loss_stages_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_TRAINING_DEVICES_H_
