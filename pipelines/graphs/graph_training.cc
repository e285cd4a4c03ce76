#include "pipelines/graphs/graph_training.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/cpu/cpu_devices.h"
#include "kernels/tensor/host_values.h"
#include "models/layers/communicator_peers.h"
#include "pipelines/runtime/executor.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Stage = PreparationStage;

GraphNetworkConfig ModelOf(const GraphData& data, const GraphTrainingOptions& options) {
  GraphNetworkConfig model = options.model;
  model.width = data.width;
  model.classes = data.classes;
  model.layers = static_cast<int>(options.batches.fanouts.size());
  model.counts.clear();
  return model;
}

GraphBatchOptions BatchesOf(const GraphTrainingOptions& options) {
  GraphBatchOptions batches = options.batches;
  batches.members = options.owners == nullptr ? options.sizes.copies : 1;
  batches.self_edges = options.model.kind == GraphConvKind::kGat;
  return batches;
}

// Memory outlives what is computed in it. A worker has no backend.
struct PreparationDevice {
  explicit PreparationDevice(const Memory::Shared& memory) : arena(memory) {
    if (memory != nullptr) staging = std::make_unique<Arena>();
  }
  Arena* host() { return staging == nullptr ? &arena : staging.get(); }

  Arena arena;                     // of the trainer's memory
  std::unique_ptr<Arena> staging;  // the host's, where that is another one
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CommunicatorPeers> group;  // the same devices of the other members
  std::vector<std::unique_ptr<StageModule>> modules;
  GraphTrainStage* train = nullptr;
};

class PreparedTraining final : public GraphTraining {
 public:
  PreparedTraining(const GraphData* data, const GraphTrainingOptions& options)
      : options_(options), batches_(data, BatchesOf(options)) {}

  absl::Status Start() {
    PreparationSizes& sizes = options_.sizes;
    const int64_t steps = options_.steps_of_epoch;
    sizes.batches = static_cast<int>(steps > 0 ? std::min(steps, batches_.steps_of_epoch())
                                               : batches_.steps_of_epoch());
    PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakePreparation(sizes));
    PIPELAB_ASSIGN_OR_RETURN(program_, Lower(std::move(schedule), {}));
    PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph,
                             BuildGraphNetwork(ModelOf(batches_.data(), options_)));
    std::vector<DeviceSetup> setups;
    const ComputeDevices host = CpuDevices(options_.threads);
    const ComputeDevices& make = options_.trainers == nullptr ? host : *options_.trainers;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComputeDevice> computes, make(sizes.copies));
    PIPELAB_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Communicator>> communicators,
                             Connect(computes));
    for (auto& communicator : communicators) {
      const int d = communicator->rank();
      const ComputeDevice& on = computes[d / DevicesOfCopy(sizes)];
      setups.push_back(DeviceSetup());
      PIPELAB_RETURN_IF_ERROR(AddDevice(d, on, graph, communicator.get()));
      PreparationDevice& device = *devices_.back();
      if (device.group != nullptr) setups.back().context = {device.group.get()};
      setups.back().arena = &device.arena;
      setups.back().communicator = std::move(communicator);
      setups.back().modules = ModulesOf(d, device);
    }
    ExecutorOptions executor;
    executor.wait_limit = options_.wait_limit;
    if (options_.first_come) executor.first_come = std::max(1, sizes.workers) * sizes.depth;
    executor.others_elsewhere =
        options_.transport != nullptr && options_.transport->processes() != nullptr;
    PIPELAB_ASSIGN_OR_RETURN(executor_, Executor::Create(&program_, std::move(setups), executor));
    return absl::OkStatus();
  }

  absl::StatusOr<GraphEpoch> RunEpoch() override {
    GraphEpoch epoch;
    PIPELAB_ASSIGN_OR_RETURN(epoch.trace, executor_->RunStep());
    epoch.losses.resize(options_.sizes.batches);
    for (const auto& device : devices_) {
      if (device->train == nullptr) continue;
      for (const auto& [batch, loss] : device->train->losses()) {
        epoch.losses[batch] += loss / static_cast<double>(options_.batches.batch);
      }
      const auto& logits = device->train->logits();
      epoch.logits.insert(logits.begin(), logits.end());
    }
    first_step_ += options_.sizes.batches;
    return epoch;
  }

  absl::StatusOr<double> Accuracy(absl::Span<const int32_t> vertices,
                                  const std::vector<int>& fanouts) override;

  const Program& program() const override { return program_; }
  const GraphBatches& batches() const override { return batches_; }
  StageParameters& parameters() override { return Trainer().train->parameters(); }

 private:
  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      const std::vector<ComputeDevice>& computes) {
    const int devices = program_.schedule.num_devices();
    if (options_.transport != nullptr) return options_.transport->Connect(devices);
    InProcessOptions in_process;
    for (int d = 0; d < devices && computes[0].memory != nullptr; ++d) {
      in_process.devices.push_back(computes[d / DevicesOfCopy(options_.sizes)].memory);
    }
    return MakeInProcessCommunicators(devices, in_process);
  }

  // Whether the device computes the stage for some worker's batches.
  bool Computes(int d, int stage) const {
    for (const auto& groups : program_.schedule.placement.groups) {
      if (std::find(groups[stage].begin(), groups[stage].end(), d) != groups[stage].end()) {
        return true;
      }
    }
    return false;
  }

  SplitMembership* MembershipOf(int copy) {
    std::unique_ptr<SplitMembership>& membership = memberships_[copy];
    if (membership == nullptr) {
      membership = std::make_unique<SplitMembership>(options_.owners, copy, options_.sizes.copies);
    }
    return membership.get();
  }

  std::unique_ptr<CommunicatorPeers> GroupOf(int d, Communicator* communicator) const {
    const int each = DevicesOfCopy(options_.sizes);
    std::vector<int> ranks;
    for (int copy = 0; copy < options_.sizes.copies; ++copy)
      ranks.push_back(copy * each + d % each);
    return std::make_unique<CommunicatorPeers>(communicator, ranks, options_.wait_limit);
  }

  absl::Status AddDevice(int d, const ComputeDevice& on, const ModelGraph& graph,
                         Communicator* communicator) {
    const int copy = d / DevicesOfCopy(options_.sizes);
    devices_.push_back(std::make_unique<PreparationDevice>(on.memory));
    PreparationDevice& device = *devices_.back();
    device.modules.resize(Stage::kStages);
    if (options_.owners != nullptr) device.group = GroupOf(d, communicator);
    if (Computes(d, Stage::kSample)) {
      auto sample = std::make_unique<SampleStage>(&batches_, copy, &first_step_, device.host());
      if (device.group != nullptr) sample->SplitWith(MembershipOf(copy), device.group.get());
      device.modules[Stage::kSample] = std::move(sample);
      device.modules[Stage::kGather] = std::make_unique<GatherStage>(&batches_);
    }
    if (Computes(d, Stage::kMove)) {
      device.modules[Stage::kMove] = std::make_unique<MoveStage>(&batches_, &device.arena);
    }
    if (!Computes(d, Stage::kTrain)) return absl::OkStatus();
    device.backend = on.make_backend(&device.arena);
    PIPELAB_ASSIGN_OR_RETURN(
        std::unique_ptr<GraphTrainStage> train,
        GraphTrainStage::Create(graph, &batches_, device.backend.get(), options_.train));
    if (device.group != nullptr) train->SplitWith(MembershipOf(copy), device.group.get());
    device.train = train.get();
    device.modules[Stage::kTrain] = std::move(train);
    return absl::OkStatus();
  }

  std::vector<std::vector<StageModule*>> ModulesOf(int d, const PreparationDevice& device) const {
    const auto& groups = program_.schedule.placement.groups;
    std::vector<std::vector<StageModule*>> modules(groups.size());
    for (size_t r = 0; r < groups.size(); ++r) {
      for (int stage = 0; stage < Stage::kStages; ++stage) {
        const std::vector<int>& group = groups[r][stage];
        const bool here = std::find(group.begin(), group.end(), d) != group.end();
        modules[r].push_back(here ? device.modules[stage].get() : nullptr);
      }
    }
    return modules;
  }

  PreparationDevice& Trainer() {
    for (auto& device : devices_) {
      if (device->train != nullptr) return *device;
    }
    LOG(FATAL) << "no trainer in this process";
  }

  GraphTrainingOptions options_;
  const GraphBatches batches_;
  Program program_;
  int64_t first_step_ = 0;
  std::map<int, std::unique_ptr<SplitMembership>> memberships_;  // of the copies here
  std::vector<std::unique_ptr<PreparationDevice>> devices_;
  std::unique_ptr<Executor> executor_;
};

int64_t CountRight(const std::vector<float>& logits, absl::Span<const int32_t> vertices,
                   const std::vector<int32_t>& rows, const GraphData& data) {
  int64_t right = 0;
  for (size_t i = 0; i < vertices.size(); ++i) {
    const auto row = logits.begin() + int64_t{rows[i]} * data.classes;
    right += std::max_element(row, row + data.classes) - row == data.labels_V[vertices[i]];
  }
  return right;
}

// Each layer over all vertices and all their edges.
GraphSample WholeGraph(const CsrGraph& graph, size_t layers) {
  GraphBlock block;
  block.num_targets = graph.num_vertices();
  block.sources.resize(graph.num_vertices());
  std::iota(block.sources.begin(), block.sources.end(), 0);
  for (int64_t offset : graph.offsets_V1) block.offsets.push_back(static_cast<int32_t>(offset));
  block.edges = graph.neighbours_E;
  GraphSample sample;
  sample.blocks.assign(layers, block);
  return sample;
}

absl::StatusOr<double> PreparedTraining::Accuracy(absl::Span<const int32_t> vertices,
                                                  const std::vector<int>& fanouts) {
  constexpr int64_t kTargets = 1024;
  PreparationDevice& trainer = Trainer();
  const GraphData& data = batches_.data();
  GraphBatchOptions options = batches_.options();
  options.batch = kTargets;
  options.members = 1;
  const bool whole = fanouts == std::vector<int>{kAllNeighbours};
  NeighbourSampler sampler(&data.graph, fanouts, options.seed + 1);
  int64_t right = 0;
  const auto run = [&](const GraphSample& sample, absl::Span<const int32_t> of,
                       const std::vector<int32_t>& rows_of) -> absl::Status {
    GraphSample with_edges = sample;
    if (options.self_edges) AddSelfEdges(&with_edges);
    std::vector<GraphIndex> blocks;
    for (const GraphBlock& b : with_edges.blocks) {
      blocks.push_back(MakeGraphIndex(b, trainer.backend.get()));
    }
    const std::vector<int32_t>& sources = sample.blocks.front().sources;
    std::vector<float> rows;
    rows.reserve(sources.size() * data.width);
    for (int32_t v : sources) {
      const auto row = data.rows_VW.begin() + int64_t{v} * data.width;
      rows.insert(rows.end(), row, row + data.width);
    }
    const Tensor rows_SW =
        trainer.backend->AllocateFloats({static_cast<int64_t>(sources.size()), data.width});
    SetHostValues(rows_SW, rows);
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> logits,
                             trainer.train->Evaluate(blocks, rows_SW));
    right += CountRight(logits, of, rows_of, data);
    return absl::OkStatus();
  };
  if (whole) {
    PIPELAB_RETURN_IF_ERROR(run(WholeGraph(data.graph, options.fanouts.size()), vertices,
                                {vertices.begin(), vertices.end()}));
  }
  for (size_t begin = 0; begin < vertices.size() && !whole; begin += kTargets) {
    const absl::Span<const int32_t> targets = vertices.subspan(begin, kTargets);
    std::vector<int32_t> rows(targets.size());
    std::iota(rows.begin(), rows.end(), 0);
    PIPELAB_RETURN_IF_ERROR(
        run(sampler.Sample(static_cast<int64_t>(begin), targets), targets, rows));
  }
  return static_cast<double>(right) / static_cast<double>(vertices.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<GraphTraining>> GraphTraining::Create(
    const GraphData* data, const GraphTrainingOptions& options) {
  const int64_t batch = options.batches.batch, copies = options.sizes.copies;
  const bool divided = options.owners == nullptr;
  if (batch < 1 || copies < 1 || (divided && batch % copies != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--batch=", batch, ": must be at least 1 and a multiple of the ", copies, " copies"));
  }
  if (batch > static_cast<int64_t>(data->train.size())) {
    return absl::InvalidArgumentError(absl::StrCat("--batch=", batch, ": must be at most ",
                                                   data->train.size(), ", the training vertices"));
  }
  if (options.first_come && (copies > 1 || options.sizes.copy_engine)) {
    return absl::InvalidArgumentError(
        copies > 1 ? absl::StrCat("--first_come: there are ", copies,
                                  " copies, which must take batches in one order")
                   : "--first_come: a copy engine moves batches in order");
  }
  auto training = std::make_unique<PreparedTraining>(data, options);
  PIPELAB_RETURN_IF_ERROR(training->Start());
  return training;
}

absl::StatusOr<std::vector<double>> SerialGraphLosses(const GraphData* data,
                                                      const GraphTrainingOptions& options,
                                                      int epochs) {
  const GraphBatches batches(data, BatchesOf(options));
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGraphNetwork(ModelOf(*data, options)));
  const int copies = options.sizes.copies;
  std::vector<std::unique_ptr<Arena>> arenas;
  std::vector<std::unique_ptr<Backend>> backends;
  std::vector<std::unique_ptr<GraphTrainStage>> trainers;
  for (int c = 0; c < copies; ++c) {
    arenas.push_back(std::make_unique<Arena>());
    backends.push_back(MakeCpuBackend(arenas.back().get()));
    PIPELAB_ASSIGN_OR_RETURN(
        trainers.emplace_back(),
        GraphTrainStage::Create(graph, &batches, backends.back().get(), options.train));
  }
  NeighbourSampler sampler(&data->graph, batches.options().fanouts, batches.options().seed);
  int64_t steps = batches.steps_of_epoch();
  if (options.steps_of_epoch > 0) steps = std::min(steps, options.steps_of_epoch);
  std::vector<double> losses;
  for (int64_t step = 0; step < steps * epochs; ++step) {
    double loss = 0;
    std::vector<float> sum;
    for (int c = 0; c < copies; ++c) {
      const Tensor words =
          arenas[c]->Allocate(DataType::kInt32, {batches.batch_words()}, MemoryKind::kActivation);
      batches.Index(sampler.Sample(step, batches.Targets(step, c)), words.i32());
      batches.GatherRows(words.i32());
      Action a;
      PIPELAB_RETURN_IF_ERROR(trainers[c]->Forward(a, {words}, false).status());
      loss += trainers[c]->losses().at(0) / static_cast<double>(options.batches.batch);
      a.kind = ActionKind::kBackward;
      PIPELAB_RETURN_IF_ERROR(trainers[c]->Backward(a, {}).status());
      PIPELAB_ASSIGN_OR_RETURN(const Tensor gradients, trainers[c]->Gradients(""));
      sum.resize(gradients.size());
      for (int64_t i = 0; i < gradients.size(); ++i) {
        sum[i] = c == 0 ? gradients.f32()[i] : sum[i] + gradients.f32()[i];
      }
    }
    for (auto& trainer : trainers) {
      PIPELAB_ASSIGN_OR_RETURN(const Tensor gradients, trainer->Gradients(""));
      std::copy(sum.begin(), sum.end(), gradients.f32().begin());
      PIPELAB_RETURN_IF_ERROR(trainer->Step(Action()));
    }
    losses.push_back(loss);
  }
  return losses;
}

}  // namespace pipelab
