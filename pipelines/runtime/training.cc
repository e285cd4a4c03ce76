#include "pipelines/runtime/training.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/comm/communicator.h"
#include "kernels/cpu/cpu_devices.h"
#include "models/graph/tensor_member.h"
#include "models/layers/communicator_peers.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/validate.h"
#include "pipelines/ir/versions.h"
#include "pipelines/runtime/chained_stage.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/runtime/gather_state.h"
#include "pipelines/runtime/gather_trace.h"
#include "pipelines/runtime/layer_stage.h"
#include "pipelines/runtime/step_loss.h"
#include "pipelines/runtime/whole_state.h"
#include "pipelines/step/step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Between processes: before a training, when one may do for all what takes long, and after a step,
// beside what the waits within it may take.
constexpr absl::Duration kStartLimit = absl::Hours(1);
constexpr absl::Duration kExchangeLimit = absl::Seconds(60);

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
  std::vector<std::unique_ptr<LayerStage>> stages;
  std::vector<std::unique_ptr<ChainedStage>> chained;  // around these, where they are a chain
};

absl::StatusOr<ModelPartition> PartitionOf(const ModelGraph& graph, int num_stages,
                                           const TrainingOptions& options) {
  if (!options.stage_of_layer.empty()) return MakePartition(graph, options.stage_of_layer);
  return ChoosePartition(graph, num_stages, options.micro_batch_samples, options.layout);
}

absl::StatusOr<Schedule> ScheduleOf(const ModelGraph& graph, const TrainingOptions& options) {
  if (options.schedule.has_value()) {
    PIPELAB_RETURN_IF_ERROR(Validate(*options.schedule));  // before sizes are taken from it
    return *options.schedule;
  }
  SchemeParams sizes = options.sizes;
  PIPELAB_ASSIGN_OR_RETURN(const Scheme* scheme, FindScheme(options.scheme));
  const bool given = !options.stage_of_layer.empty() || !options.layout.empty();
  if ((scheme->options & kStageGraph) != 0 && given && sizes.stages.num_stages() == 0) {
    PIPELAB_ASSIGN_OR_RETURN(const ModelPartition stages,
                             PartitionOf(graph, /*num_stages=*/0, options));
    sizes.stages = stages.stages;
  }
  return MakeSchedule(options.scheme, sizes);
}

class DeviceTraining final : public PipelineTraining {
 public:
  static absl::StatusOr<std::unique_ptr<PipelineTraining>> Create(const ModelGraph& graph,
                                                                  const BatchSource& batches,
                                                                  const TrainingOptions& options) {
    auto training = std::make_unique<DeviceTraining>();
    training->split_ = {options.tensor_parallel, options.sequence_parallel};
    PIPELAB_RETURN_IF_ERROR(CheckTensorParallel(graph, training->split_));
    const NumberWidth width{SizeOf(options.devices.activations())};
    PIPELAB_ASSIGN_OR_RETURN(training->graph_, WithNumberWidth(graph, width, "--dtype=bf16"));
    PIPELAB_RETURN_IF_ERROR(training->MakeProgram(training->graph_, options));
    PIPELAB_RETURN_IF_ERROR(training->MakeDevices(training->graph_, batches, options));
    return training;
  }

  absl::StatusOr<TrainingStep> Step() override {
    TrainingStep step;
    in_step_ = true;
    for (const auto& device : devices_) {
      if (device->begin_step) device->begin_step();
    }
    PIPELAB_ASSIGN_OR_RETURN(step.trace, executor_->RunStep());
    std::vector<LossPart> own;
    for (const auto& [place, stage] : loss_stages_) {
      own.push_back({place, stage->losses(), stage->gradient_norm()});
    }
    StepLoss loss;
    if (processes_ == nullptr) {
      loss = SumLosses(std::move(own));
    } else {
      PIPELAB_ASSIGN_OR_RETURN(loss, SumLossesOfProcesses(*processes_, own, exchange_limit_));
      PIPELAB_ASSIGN_OR_RETURN(
          step.trace, GatherTrace(*processes_, std::move(step.trace), executor_->step_begin_ns(),
                                  exchange_limit_));
    }
    in_step_ = false;
    step.loss = loss.sum / static_cast<double>(batch_tokens_);
    step.gradient_norm = loss.gradient_norm;
    return step;
  }

  absl::StatusOr<std::vector<float>> ParameterValue(const std::string& name) const override {
    for (const StateEntry& entry : StateEntries(*target_.graph, /*optimizer_state=*/{})) {
      if (entry.spec->name != name) continue;
      if (processes_ == nullptr) return WholeTensor(entry, Stages());
      return GatherTensor(*processes_, entry, Stages(), exchange_limit_);
    }
    return absl::NotFoundError(absl::StrCat("the model has no parameter \"", name, "\""));
  }

  absl::StatusOr<TrainingState> State() const override {
    PIPELAB_RETURN_IF_ERROR(CheckSteps());
    if (processes_ == nullptr) return WholeState(target_, Stages());
    return GatherState(*processes_, target_, Stages(), exchange_limit_);
  }

  absl::Status SetState(const TrainingState& state) override {
    PIPELAB_RETURN_IF_ERROR(CheckSteps());
    if (processes_ == nullptr) return SetWholeState(state, target_, Stages());
    return SpreadState(*processes_, state, target_, Stages(), exchange_limit_);
  }

  const Program& program() const override { return program_; }
  const std::vector<int64_t>& slices() const override { return slices_; }
  const CostTable& costs() const override { return costs_; }
  const ModelPartition& partition() const override { return partition_; }

  std::vector<ComputeDevice::Counts> DeviceCounts() const override {
    std::vector<ComputeDevice::Counts> counts;
    for (const auto& device : devices_) {
      counts.push_back(device->counts ? device->counts() : ComputeDevice::Counts());
    }
    return counts;
  }

 private:
  // Of several processes, that none has a step that failed.
  absl::Status CheckSteps() const {
    absl::Status own;
    if (in_step_) {
      own = absl::FailedPreconditionError(
          "a training step failed; what it left behind cannot be gone on from");
    }
    return processes_ == nullptr ? own : processes_->Agree(own, exchange_limit_);
  }

  std::vector<LayerStage*> Stages() const {
    std::vector<LayerStage*> stages;
    for (const auto& device : devices_) {
      for (const auto& stage : device->stages) stages.push_back(stage.get());
    }
    return stages;
  }

  absl::Status MakeProgram(const ModelGraph& graph, const TrainingOptions& options) {
    PIPELAB_RETURN_IF_ERROR(CheckOptimizer(options.optimizer));
    StepParts parts;
    PIPELAB_ASSIGN_OR_RETURN(parts.schedule, ScheduleOf(graph, options));
    PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition,
                             PartitionOf(graph, parts.schedule.num_stages(), options));
    PIPELAB_ASSIGN_OR_RETURN(slices_, ChooseSlices(graph, parts.schedule, options.slices));
    PIPELAB_RETURN_IF_ERROR(CheckBatchNorm(graph, partition, parts.schedule, options.batch_norm));
    const GroupedModel model = {graph, {}};
    StepModel on;
    on.model = &model;
    on.optimizer_tensors = static_cast<int>(StateNames(options.optimizer).size());
    on.step_flops_per_parameter = StepFlopsPerParameter(options.optimizer);
    parts.model = &on;
    parts.partition = &partition;
    parts.slices = slices_;
    parts.micro_batch_size = options.micro_batch_samples;
    parts.config.tensor = static_cast<int>(split_.degree);
    parts.config.sequence_parallel = split_.sequence;
    parts.config.batch_norm = options.batch_norm;
    parts.lowering = options.lowering;
    parts.lowering.stages = options.sequential ? partition.stages.WithChain() : partition.stages;
    if (options.optimizer.needs_norm()) parts.lowering.norm_values = NumParameterValues(graph);
    PIPELAB_ASSIGN_OR_RETURN(pipelab::Step step, AssembleStep(std::move(parts)));
    partition_ = std::move(step.partition);
    program_ = std::move(step.program);
    costs_ = std::move(step.costs);
    return absl::OkStatus();
  }

  absl::Status MakeDevices(const ModelGraph& graph, const BatchSource& batches,
                           const TrainingOptions& options) {
    const Schedule& schedule = program_.schedule;
    batch_tokens_ =
        schedule.num_micro_batches * options.micro_batch_samples * batches.targets_per_sample();
    target_.graph = &graph;
    target_.optimizer = OptimizerKindName(options.optimizer.kind);
    const auto names = StateNames(options.optimizer);
    target_.optimizer_state.assign(names.begin(), names.end());
    target_.seed = options.seed;
    PIPELAB_RETURN_IF_ERROR(CountUpdates());
    const int group = static_cast<int>(split_.degree), ranks = schedule.num_devices() * group;
    std::vector<ComputeDevice> computes;
    PIPELAB_ASSIGN_OR_RETURN(auto communicators, Connect(ranks, options, &computes));
    first_rank_ = communicators[0]->rank();
    costs_.collectives_at_wait = communicators[0]->collectives_work_at_wait();
    std::vector<DeviceSetup> setups(communicators.size());
    for (size_t i = 0; i < communicators.size(); ++i) {
      devices_.push_back(std::make_unique<Device>(computes[i]));
      Device& device = *devices_[i];
      if (group > 1) {
        device.peers = std::make_unique<CommunicatorPeers>(
            communicators[i].get(), TensorRanks(communicators[i]->rank() / group),
            options.wait_limit);
      }
      setups[i].arena = &device.arena;
      setups[i].peers = device.peers.get();
      setups[i].communicator = std::move(communicators[i]);
      setups[i].modules.assign(schedule.placement.num_replicas(),
                               std::vector<StageModule*>(schedule.num_stages(), nullptr));
    }
    for (int t = 0; t < group; ++t) {
      const ModelGraph part = MemberGraph(graph, split_, t);
      for (int r = 0; r < schedule.placement.num_replicas(); ++r) {
        for (int stage = 0; stage < schedule.num_stages(); ++stage) {
          PIPELAB_RETURN_IF_ERROR(MakeStage(part, t, batches, options, r, stage, &setups));
        }
      }
    }
    ExecutorOptions executor;
    executor.tensor_parallel = group;
    executor.divided_messages = costs_.divided_messages;
    executor.wait_limit = options.wait_limit;
    executor.trace = options.trace;
    executor.others_elsewhere = processes_ != nullptr;
    PIPELAB_ASSIGN_OR_RETURN(executor_, Executor::Create(&program_, std::move(setups), executor));
    // Some may still be busy with what comes before training, in one process for all.
    return processes_ == nullptr ? absl::OkStatus() : processes_->Meet(kStartLimit);
  }

  // Communicators of the ranks in this process, which follow one another, and what they compute on.
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      int ranks, const TrainingOptions& options, std::vector<ComputeDevice>* computes) {
    if (options.transport != nullptr) processes_ = options.transport->processes();
    const int processes = processes_ == nullptr ? 1 : processes_->size();
    PIPELAB_RETURN_IF_ERROR(CheckDevicesOfProcesses(ranks, processes));
    PIPELAB_ASSIGN_OR_RETURN(*computes,
                             (options.devices ? options.devices : CpuDevices())(ranks / processes));
    InProcessOptions in_process;
    in_process.rendezvous = options.rendezvous;
    for (const ComputeDevice& on : *computes) {
      if (on.memory != nullptr) in_process.devices.push_back(on.memory);
    }
    if (processes_ == nullptr) return MakeInProcessCommunicators(ranks, in_process);
    exchange_limit_ = kExchangeLimit + 4 * options.wait_limit;
    if (in_process.devices.empty()) return options.transport->Connect(ranks);
    if (computes->size() > 1 || !computes->front().join) {
      return absl::InvalidArgumentError(absl::StrCat(
          "devices with memory of their own cannot be in ", processes, " processes over ",
          options.transport->name(), ", which moves the host's; start ",
          computes->front().join ? "a process for each device, or one" : "one process"));
    }
    std::vector<std::unique_ptr<Communicator>> own(1);
    PIPELAB_ASSIGN_OR_RETURN(own[0], computes->front().join(processes_, ranks, exchange_limit_));
    return own;
  }
  // Null where the rank is in another process.
  Device* DeviceOf(int rank) const {
    const int i = rank - first_rank_;
    return i < 0 || i >= static_cast<int>(devices_.size()) ? nullptr : devices_[i].get();
  }

  // Asynchronous schedules take several optimizer steps a run, each on the mean loss of as many
  // tokens.
  absl::Status CountUpdates() {
    const Schedule& schedule = program_.schedule;
    update_tokens_ = batch_tokens_;
    if (!HasOwnSteps(schedule)) return absl::OkStatus();
    version_uses_ = VersionUses(schedule);
    const int updates = static_cast<int>(version_uses_[0].size()) - 1;
    for (const std::vector<int32_t>& uses : version_uses_) {
      if (static_cast<int>(uses.size()) - 1 == updates &&
          schedule.num_micro_batches % updates == 0) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("the schedule's ", schedule.num_micro_batches,
                       " micro-batches do not divide among the steps (S) of each stage"));
    }
    update_tokens_ = batch_tokens_ / updates;
    target_.updates_a_step = updates;
    return absl::OkStatus();
  }

  // Of one device of the program.
  std::vector<int> TensorRanks(int device) const {
    std::vector<int> ranks;
    for (int t = 0; t < split_.degree; ++t) ranks.push_back(RankOf(device, t));
    return ranks;
  }
  int RankOf(int device, int t) const { return device * static_cast<int>(split_.degree) + t; }

  ChainEdges ChainEdgesOf(int stage, const LayerStageOptions& options) const {
    const StageGraph &all = program_.schedule.stages, &own = partition_.stages;
    ChainEdges edges;
    edges.own_in = static_cast<int>(own.in_edges[stage].size());
    edges.own_out = static_cast<int>(own.out_edges[stage].size());
    edges.more_in = static_cast<int>(all.in_edges[stage].size()) - edges.own_in;
    edges.more_out = static_cast<int>(all.out_edges[stage].size()) - edges.own_out;
    edges.rows = options.micro_batch_samples / options.group_size;
    return edges;
  }

  // The stage's module on rank t of each device of its group; `part` is what such a rank has of the
  // model.
  absl::Status MakeStage(const ModelGraph& part, int t, const BatchSource& batches,
                         const TrainingOptions& options, int replica, int stage,
                         std::vector<DeviceSetup>* setups) {
    const std::vector<int>& group = program_.schedule.placement.groups[replica][stage];
    for (size_t member = 0; member < group.size(); ++member) {
      const int rank = RankOf(group[member], t);
      Device* const device = DeviceOf(rank);
      if (device == nullptr) continue;
      LayerStageOptions stage_options;
      stage_options.micro_batch_samples =
          options.micro_batch_samples * program_.schedule.MicroBatchSize(stage);
      stage_options.group_size = static_cast<int>(group.size());
      stage_options.member = static_cast<int>(member);
      stage_options.data = &batches;
      stage_options.seed = options.seed;
      stage_options.optimizer = options.optimizer;
      stage_options.batch_tokens = update_tokens_;
      if (!version_uses_.empty()) stage_options.version_uses = version_uses_[stage];
      stage_options.slices = slices_;
      stage_options.shard = ShardOf(program_, {group[member], replica, stage});
      stage_options.peers = device->peers.get();
      if (group.size() > 1 && options.batch_norm == BatchNormCopies::kSynchronised &&
          StageHasBatchNorm(part, partition_, stage)) {
        std::vector<int> ranks;
        for (int d : group) ranks.push_back(RankOf(d, t));
        std::sort(ranks.begin(), ranks.end());
        DeviceSetup& setup = (*setups)[rank - first_rank_];
        device->copies.push_back(std::make_unique<CommunicatorPeers>(
            setup.communicator.get(), std::move(ranks), options.wait_limit));
        stage_options.copies = device->copies.back().get();
        setup.copies.push_back(device->copies.back().get());
      }
      PIPELAB_ASSIGN_OR_RETURN(
          auto module,
          LayerStage::Create(part, partition_, stage, device->backend.get(), stage_options));
      (*setups)[rank - first_rank_].modules[replica][stage] = module.get();
      if (options.sequential) {
        device->chained.push_back(std::make_unique<ChainedStage>(
            module.get(), device->backend.get(), ChainEdgesOf(stage, stage_options)));
        (*setups)[rank - first_rank_].modules[replica][stage] = device->chained.back().get();
      }
      // All ranks of a tensor-parallel group have the same loss.
      if (stage == partition_.loss_stage && t == 0) {
        const int64_t place = replica * program_.schedule.num_devices() + static_cast<int>(member);
        loss_stages_.emplace_back(place, module.get());
      }
      device->stages.push_back(std::move(module));
    }
    return absl::OkStatus();
  }

  TensorParallel split_;
  ModelGraph graph_;  // with the width of the devices' activations
  Program program_;
  CostTable costs_;
  std::vector<int64_t> slices_;
  ModelPartition partition_;
  int64_t batch_tokens_ = 0, update_tokens_ = 0;
  StateTarget target_;                              // what a state must fit
  bool in_step_ = false;                            // stays when a step fails
  std::vector<std::vector<int32_t>> version_uses_;  // [stage]; asynchronous schedules only
  ProcessGroup* processes_ = nullptr;               // null: all devices are in this process
  absl::Duration exchange_limit_;                   // between processes, after a step
  int first_rank_ = 0;                              // of this process
  std::vector<std::unique_ptr<Device>> devices_;    // [rank - first_rank_]
  // With its place among the copies of the stage.
  std::vector<std::pair<int64_t, const LayerStage*>> loss_stages_;
  std::unique_ptr<Executor> executor_;  // last: its threads end before what they use
};

}  // namespace

absl::StatusOr<std::unique_ptr<PipelineTraining>> PipelineTraining::Create(
    const ModelGraph& graph, const BatchSource& batches, const TrainingOptions& options) {
  return DeviceTraining::Create(graph, batches, options);
}

absl::StatusOr<ModelPartition> ChoosePartition(const ModelGraph& graph, int num_stages,
                                               int64_t micro_batch_samples,
                                               absl::string_view layout) {
  const GroupedModel model = {graph, {}};
  StepModel on;
  on.model = &model;
  StepConfig config;
  config.cut = CutRule::kLayers;
  config.micro_batch_size = micro_batch_samples;
  config.layout = std::string(layout);
  StepCache cache(on);
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition* partition, cache.PartitionOf(config, num_stages));
  return *partition;
}

Trace TraceOfMember(const Trace& ranks, int64_t tensor_parallel, int64_t t) {
  Trace trace;
  trace.origin = ranks.origin;
  trace.makespan = ranks.makespan;
  for (size_t r = static_cast<size_t>(t); r < ranks.devices.size(); r += tensor_parallel) {
    trace.devices.push_back(ranks.devices[r]);
  }
  return trace;
}
}  // namespace pipelab
