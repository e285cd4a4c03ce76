#include "pipelines/runtime/training_devices.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_devices.h"
#include "models/graph/tensor_member.h"
#include "pipelines/sim/memory_levels.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Between processes, after a step, beside what the waits within it may take.
constexpr absl::Duration kExchangeLimit = absl::Seconds(60);

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingDevices>> TrainingDevices::Create(
    const TrainingPlan& plan, const BatchSource& batches, const TrainingOptions& options) {
  std::unique_ptr<TrainingDevices> devices(new TrainingDevices(plan, batches, options));
  PIPELAB_RETURN_IF_ERROR(devices->MakeDevices());
  PIPELAB_RETURN_IF_ERROR(devices->MakeStages());
  return devices;
}

void TrainingDevices::BeginStep() const {
  for (const auto& device : devices_) {
    if (device->begin_step) device->begin_step();
  }
}

// Ranks of a group route the same rows, unless each has whole experts and its own rows.
LoadsOfLayers TrainingDevices::TakeLoads() const {
  LoadsOfLayers all;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const bool first = (first_rank_ + static_cast<int64_t>(i)) % plan_.split.degree == 0;
    for (const auto& stage : devices_[i]->stages) {
      const LoadsOfLayers loads = stage->TakeLoads();
      if (first || plan_.split.whole_experts) AddLoads(loads, &all);
    }
  }
  return all;
}

std::vector<LayerStage*> TrainingDevices::Stages() const {
  std::vector<LayerStage*> stages;
  for (const auto& device : devices_) {
    for (const auto& stage : device->stages) stages.push_back(stage.get());
  }
  return stages;
}

std::vector<ComputeDevice::Counts> TrainingDevices::Counts() const {
  std::vector<ComputeDevice::Counts> counts;
  for (const auto& device : devices_) {
    counts.push_back(device->counts ? device->counts() : ComputeDevice::Counts());
  }
  return counts;
}

absl::Status TrainingDevices::MakeDevices() {
  const Schedule& schedule = plan_.step.program.schedule;
  const int group = static_cast<int>(plan_.split.degree), ranks = schedule.num_devices() * group;
  std::vector<ComputeDevice> computes;
  PIPELAB_ASSIGN_OR_RETURN(auto communicators, Connect(ranks, &computes));
  first_rank_ = communicators[0]->rank();
  collectives_at_wait_ = communicators[0]->collectives_work_at_wait();
  setups_.resize(communicators.size());
  for (size_t i = 0; i < communicators.size(); ++i) {
    devices_.push_back(std::make_unique<Device>(computes[i]));
    Device& device = *devices_[i];
    if (group > 1) {
      device.peers = std::make_unique<CommunicatorPeers>(
          communicators[i].get(), TensorRanks(communicators[i]->rank() / group),
          options_.wait_limit);
    }
    setups_[i].arena = &device.arena;
    setups_[i].peers = device.peers.get();
    setups_[i].communicator = std::move(communicators[i]);
    setups_[i].modules.assign(schedule.placement.num_replicas(),
                              std::vector<StageModule*>(schedule.num_stages(), nullptr));
  }
  PIPELAB_RETURN_IF_ERROR(MakeExchangers(computes));
  return options_.fill_works ? MakeFills(computes) : absl::OkStatus();
}

absl::Status TrainingDevices::MakeExchangers(const std::vector<ComputeDevice>& computes) {
  if (plan_.step.program.exchanges.empty()) return absl::OkStatus();
  if (processes_ != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("slice_exchange: the devices are in ", processes_->size(), " processes over ",
                     options_.transport->name(), ", and must be threads of one"));
  }
  const int group = static_cast<int>(plan_.split.degree);
  auto communicators =
      MakeInProcessCommunicators(static_cast<int>(devices_.size()), InProcessOf(computes));
  for (size_t i = 0; i < devices_.size(); ++i) {
    const int device = static_cast<int>(i) / group, t = static_cast<int>(i) % group;
    devices_[i]->exchange = std::make_unique<SliceExchanger>(
        plan_.step.program, device, std::move(communicators[i]),
        [&](int other) { return RankOf(other, t); }, options_.wait_limit);
    setups_[i].exchange = devices_[i]->exchange.get();
  }
  return absl::OkStatus();
}

InProcessOptions TrainingDevices::InProcessOf(const std::vector<ComputeDevice>& computes) const {
  InProcessOptions in_process;
  in_process.rendezvous = options_.rendezvous;
  for (const ComputeDevice& on : computes) {
    if (on.memory != nullptr) in_process.devices.push_back(on.memory);
  }
  return in_process;
}

absl::Status TrainingDevices::MakeFills(const std::vector<ComputeDevice>& computes) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    Device& device = *devices_[i];
    device.fill_arena = std::make_unique<Arena>(computes[i].memory);
    device.fill_backend = computes[i].make_backend(device.fill_arena.get());
    PIPELAB_ASSIGN_OR_RETURN(FillWorks works, options_.fill_works(first_rank_ + static_cast<int>(i),
                                                                  device.fill_backend.get()));
    FillRunnerOptions fill;
    fill.slack = options_.fill.slack;
    if (options_.fill.device_memory > Bytes(0)) {
      const int d = (first_rank_ + static_cast<int>(i)) / static_cast<int>(plan_.split.degree);
      const MemoryPeak peak = PeakMemory(plan_.step.program, plan_.step.costs, d);
      fill.limit = std::max(options_.fill.device_memory - peak.parts.total(), Bytes(0));
    }
    device.fill = std::make_unique<FillRunner>(device.fill_arena.get(), std::move(works), fill);
    setups_[i].fill = device.fill.get();
  }
  return absl::OkStatus();
}

std::vector<FillReport> TrainingDevices::FillReports() const {
  std::vector<FillReport> reports;
  for (const auto& device : devices_) {
    if (device->fill != nullptr) reports.push_back(device->fill->Report());
  }
  return reports;
}

// Communicators of the ranks in this process, which follow one another, and what they compute on.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> TrainingDevices::Connect(
    int ranks, std::vector<ComputeDevice>* computes) {
  if (options_.transport != nullptr) processes_ = options_.transport->processes();
  const int processes = processes_ == nullptr ? 1 : processes_->size();
  PIPELAB_RETURN_IF_ERROR(CheckDevicesOfProcesses(ranks, processes));
  PIPELAB_ASSIGN_OR_RETURN(*computes,
                           (options_.devices ? options_.devices : CpuDevices())(ranks / processes));
  const InProcessOptions in_process = InProcessOf(*computes);
  if (processes_ == nullptr) return MakeInProcessCommunicators(ranks, in_process);
  exchange_limit_ = kExchangeLimit + 4 * options_.wait_limit;
  if (in_process.devices.empty()) return options_.transport->Connect(ranks);
  if (computes->size() > 1 || !computes->front().join) {
    return absl::InvalidArgumentError(absl::StrCat(
        "devices with memory of their own cannot be in ", processes, " processes over ",
        options_.transport->name(), ", which moves the host's; start ",
        computes->front().join ? "a process for each device, or one" : "one process"));
  }
  std::vector<std::unique_ptr<Communicator>> own(1);
  PIPELAB_ASSIGN_OR_RETURN(own[0], computes->front().join(processes_, ranks, exchange_limit_));
  return own;
}

absl::Status TrainingDevices::MakeStages() {
  const Schedule& schedule = plan_.step.program.schedule;
  const int each = static_cast<int>(std::lcm(plan_.split.context, plan_.split.expert_copies()));
  for (int t = 0; t < plan_.split.degree; ++t) {
    for (int first = 0; first < each; ++first) {
      const ModelGraph part = MemberGraph(plan_.graph, plan_.split, t, first % plan_.split.context,
                                          plan_.split.ShareOfExperts(first, t));
      for (int r = 0; r < schedule.placement.num_replicas(); ++r) {
        for (int stage = 0; stage < schedule.num_stages(); ++stage) {
          PIPELAB_RETURN_IF_ERROR(MakeStage(part, t, first, each, r, stage));
        }
      }
    }
  }
  return absl::OkStatus();
}

// The stage's module on rank t of every `each`-th device of its group, from `first` on; `part`
// is what such a rank has of the model.
absl::Status TrainingDevices::MakeStage(const ModelGraph& part, int t, int first, int each,
                                        int replica, int stage) {
  const std::vector<int>& group = plan_.step.program.schedule.placement.groups[replica][stage];
  for (size_t member = first; member < group.size(); member += each) {
    const int rank = RankOf(group[member], t);
    Device* const device = DeviceOf(rank);
    if (device == nullptr) continue;
    LayerStageOptions stage_options = StageOptions(replica, stage, member);
    stage_options.peers = device->peers.get();
    stage_options.exchange = device->exchange.get();
    if (group.size() > 1 && options_.config.batch_norm == BatchNormCopies::kSynchronised &&
        StageHasBatchNorm(part, plan_.step.partition, stage)) {
      stage_options.copies = CopiesOf(device, rank, t, group);
    }
    if (plan_.split.context > 1) {
      stage_options.context =
          MeetingOf(device, rank, t, group, member, plan_.split.context, /*whole=*/false);
    }
    if (plan_.split.experts > 1) {
      stage_options.experts = MeetingOf(device, rank, t, group, member, plan_.split.expert_copies(),
                                        plan_.split.whole_experts);
    }
    PIPELAB_ASSIGN_OR_RETURN(auto module, LayerStage::Create(part, plan_.step.partition, stage,
                                                             device->backend.get(), stage_options));
    StageModule*& runs = setups_[rank - first_rank_].modules[replica][stage];
    runs = module.get();
    if (options_.sequential) {
      device->chained.push_back(std::make_unique<ChainedStage>(module.get(), device->backend.get(),
                                                               ChainEdgesOf(stage, stage_options)));
      runs = device->chained.back().get();
    }
    // All ranks of a tensor-parallel group have the same loss.
    if (stage == plan_.step.partition.loss_stage && t == 0) {
      const int64_t place =
          replica * plan_.step.program.schedule.num_devices() + static_cast<int>(member);
      loss_stages_.emplace_back(place, module.get());
    }
    device->stages.push_back(std::move(module));
  }
  return absl::OkStatus();
}

LayerStageOptions TrainingDevices::StageOptions(int replica, int stage, size_t member) const {
  const Schedule& schedule = plan_.step.program.schedule;
  const std::vector<int>& group = schedule.placement.groups[replica][stage];
  LayerStageOptions o;
  o.micro_batch_size = options_.samples() * schedule.MicroBatchSize(stage);
  // Those with parts of the same samples are one.
  o.data_parallel_size = static_cast<int>(group.size()) / static_cast<int>(plan_.split.context);
  o.member = static_cast<int>(member) / static_cast<int>(plan_.split.context);
  o.data = &batches_;
  o.seed = options_.seed;
  o.optimizer = options_.optimizer;
  o.batch_tokens = plan_.update_tokens[stage];
  if (schedule.ReplaysAt(stage)) {
    for (int m = 0; m < schedule.MicroBatches(stage); ++m) {
      o.sample_of_pass.push_back(schedule.SampleOf(stage, m));
    }
  }
  if (!plan_.version_uses.empty()) o.version_uses = plan_.version_uses[stage];
  o.slices = plan_.step.slices;
  o.forward_only = schedule.forward_only;
  o.shard = ShardOf(plan_.step.program, {group[member], replica, stage});
  return o;
}

// What normalises together with the device's stage.
TensorPeers* TrainingDevices::CopiesOf(Device* device, int rank, int t,
                                       const std::vector<int>& group) {
  std::vector<int> ranks;
  for (int d : group) ranks.push_back(RankOf(d, t));
  device->copies.push_back(PeersOf(rank, std::move(ranks)));
  setups_[rank - first_rank_].copies.push_back(device->copies.back().get());
  return device->copies.back().get();
}

TensorPeers* TrainingDevices::MeetingOf(Device* device, int rank, int t,
                                        const std::vector<int>& group, size_t member,
                                        size_t together, bool whole) {
  const size_t first = member - member % together;
  std::vector<int> ranks;
  for (size_t d = first; d < first + together; ++d) {
    const std::vector<int> of_device =
        whole ? TensorRanks(group[d]) : std::vector<int>{RankOf(group[d], t)};
    ranks.insert(ranks.end(), of_device.begin(), of_device.end());
  }
  device->context.push_back(PeersOf(rank, std::move(ranks)));
  setups_[rank - first_rank_].context.push_back(device->context.back().get());
  return device->context.back().get();
}

std::unique_ptr<CommunicatorPeers> TrainingDevices::PeersOf(int rank, std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return std::make_unique<CommunicatorPeers>(setups_[rank - first_rank_].communicator.get(),
                                             std::move(ranks), options_.wait_limit);
}

ChainEdges TrainingDevices::ChainEdgesOf(int stage, const LayerStageOptions& options) const {
  const StageGraph &all = plan_.step.program.schedule.stages, &own = plan_.step.partition.stages;
  ChainEdges edges;
  edges.own_in = static_cast<int>(own.in_edges[stage].size());
  edges.own_out = static_cast<int>(own.out_edges[stage].size());
  edges.more_in = static_cast<int>(all.in_edges[stage].size()) - edges.own_in;
  edges.more_out = static_cast<int>(all.out_edges[stage].size()) - edges.own_out;
  edges.rows = options.micro_batch_size / options.data_parallel_size;
  return edges;
}

// Null where the rank is in another process.
TrainingDevices::Device* TrainingDevices::DeviceOf(int rank) const {
  const int i = rank - first_rank_;
  return i < 0 || i >= static_cast<int>(devices_.size()) ? nullptr : devices_[i].get();
}

// The ranks of one device of the program.
std::vector<int> TrainingDevices::TensorRanks(int device) const {
  std::vector<int> ranks;
  for (int t = 0; t < plan_.split.degree; ++t) ranks.push_back(RankOf(device, t));
  return ranks;
}

}  // namespace pipelab
