#include "pipelines/graphs/graph_training.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/process_group.h"
#include "kernels/comm/thread_processes.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/device.h"
#include "models/data/graph_store.h"
#include "pipelines/graphs/graph_figures.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

const GraphData& SmallGraph() {
  static const auto* const data = new GraphData([] {
    GeneratedGraph shape;
    shape.degrees_V = PowerLawDegrees(600, 1.7, 2, 60, 1);
    shape.classes = 5;
    shape.width = 12;
    shape.noise = 1.5;
    return GenerateGraph(shape, 2);
  }());
  return *data;
}

GraphTrainingOptions Small(int workers, int depth, GraphConvKind kind = GraphConvKind::kSage) {
  GraphTrainingOptions options;
  options.sizes.workers = workers;
  options.sizes.depth = depth;
  options.batches.batch = 64;
  options.batches.fanouts = {5, 3};
  options.model.kind = kind;
  options.model.hidden = 16;
  options.model.heads = kind == GraphConvKind::kGat ? 2 : 1;
  options.train.optimizer.adam.learning_rate = 0.01f;
  return options;
}

std::vector<double> LossesOfEpochs(const GraphTrainingOptions& options, int epochs) {
  auto training = GraphTraining::Create(&SmallGraph(), options);
  EXPECT_THAT(training, IsOk());
  std::vector<double> losses;
  for (int e = 0; e < epochs && training.ok(); ++e) {
    const auto epoch = (*training)->RunEpoch();
    EXPECT_THAT(epoch, IsOk());
    if (!epoch.ok()) break;
    losses.insert(losses.end(), epoch->losses.begin(), epoch->losses.end());
  }
  return losses;
}

TEST(GraphTraining, LossesAreTheSerialLoopsBits) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> serial,
                               SerialGraphLosses(&SmallGraph(), Small(0, 1), 2));
  ASSERT_EQ(serial.size(), 14u);
  EXPECT_LT(serial.back(), 0.9 * serial.front());
  for (int workers : {0, 1, 2, 4}) {
    for (int depth = 1; depth <= 8; ++depth) {
      for (bool engine : {false, true}) {
        if (workers == 0 && (engine || depth > 1)) continue;
        GraphTrainingOptions options = Small(workers, depth);
        options.sizes.copy_engine = engine;
        EXPECT_EQ(LossesOfEpochs(options, 2), serial) << workers << " workers, depth " << depth;
      }
    }
  }
}

// Blocks of more rows than a part of any kernel.
TEST(GraphTraining, LossesAreTheSameBitsForAnyNumberOfThreads) {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(3000, 1.7, 2, 60, 1);
  shape.classes = 5;
  shape.width = 32;
  const GraphData data = GenerateGraph(shape, 2);
  for (GraphConvKind kind : {GraphConvKind::kSage, GraphConvKind::kGin, GraphConvKind::kGat}) {
    GraphTrainingOptions options = Small(1, 2, kind);
    options.batches.batch = 1024;
    options.model.hidden = 64;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> serial,
                                 SerialGraphLosses(&data, options, 2));
    for (int threads : {1, 2, 3}) {
      options.threads = threads;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, GraphTraining::Create(&data, options));
      for (size_t begin = 0; begin < serial.size(); begin += serial.size() / 2) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const GraphEpoch epoch, training->RunEpoch());
        for (size_t i = 0; i < epoch.losses.size(); ++i) {
          EXPECT_EQ(epoch.losses[i], serial[begin + i]) << threads << " threads, batch " << i;
        }
      }
    }
  }
}

TEST(GraphTraining, EveryKindOfLayerAndCopies) {
  for (GraphConvKind kind : {GraphConvKind::kSage, GraphConvKind::kGin, GraphConvKind::kGat}) {
    for (int copies : {1, 2}) {
      GraphTrainingOptions options = Small(2, 2, kind);
      options.sizes.copies = copies;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> serial,
                                   SerialGraphLosses(&SmallGraph(), options, 1));
      EXPECT_EQ(LossesOfEpochs(options, 1), serial) << copies << " copies";
    }
  }
}

// A copy in each process, with workers of its own; losses are shares, summed in the order of
// copies.
TEST(GraphTraining, InSeveralProcesses) {
  GraphTrainingOptions options = Small(1, 2);
  options.sizes.copies = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> serial,
                               SerialGraphLosses(&SmallGraph(), options, 1));
  std::vector<std::vector<double>> shares(2);
  RunAsProcesses(2, [&](Transport& transport) {
    GraphTrainingOptions own = options;
    own.transport = &transport;
    shares[transport.processes()->rank()] = LossesOfEpochs(own, 1);
  });
  ASSERT_EQ(shares[0].size(), serial.size());
  ASSERT_EQ(shares[1].size(), serial.size());
  for (size_t i = 0; i < serial.size(); ++i) EXPECT_EQ(shares[0][i] + shares[1][i], serial[i]) << i;
}

// Kernels of a GPU as loops, on a device whose memory the host may not touch.
TEST(GraphTraining, OnADevice) {
  const ComputeDevices devices([](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    std::vector<ComputeDevice> all;
    for (int i = 0; i < count; ++i) {
      std::shared_ptr<gpu::Device> device = gpu::MakeEmulatedDevice();
      all.push_back({device, [device](Arena* arena) {
                       return MakeCudaBackend(arena, device, DataType::kFloat32);
                     }});
    }
    return all;
  });
  for (GraphConvKind kind : {GraphConvKind::kSage, GraphConvKind::kGat}) {
    GraphTrainingOptions options = Small(2, 2, kind);
    const std::vector<double> on_host = LossesOfEpochs(options, 1);
    options.trainers = &devices;
    const std::vector<double> there = LossesOfEpochs(options, 1);
    ASSERT_EQ(there.size(), on_host.size());
    for (size_t i = 0; i < there.size(); ++i) EXPECT_NEAR(there[i], on_host[i], 1e-4);
  }
}

TEST(GraphTraining, LearnsAndSampledInferenceIsNearlyWholeInference) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, GraphTraining::Create(&SmallGraph(), Small(1, 2)));
  for (int e = 0; e < 15; ++e) ASSERT_THAT(training->RunEpoch(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double sampled,
                               training->Accuracy(SmallGraph().test, {60, 60}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double whole,
                               training->Accuracy(SmallGraph().test, {kAllNeighbours}));
  EXPECT_GT(whole, 0.7);
  EXPECT_EQ(sampled, whole);  // no vertex has more than 60 neighbours
}

// What a measured epoch's times give in the simulator: its program ends, and no later than all
// work in line.
TEST(GraphTraining, AMeasuredEpochIsSimulated) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, GraphTraining::Create(&SmallGraph(), Small(2, 2)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GraphEpoch epoch, training->RunEpoch());
  const std::vector<BatchSeconds> seconds = SecondsOf(training->program(), epoch.trace);
  double prepare = 0, train = 0;
  for (const BatchSeconds& s : seconds) {
    EXPECT_GT(s.sample, 0);
    EXPECT_GT(s.gather, 0);
    EXPECT_GT(s.backward, 0);
    prepare += s.prepare();
    train += s.train();
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Trace trace,
      Simulate(training->program(), PreparationCosts(training->program().schedule, seconds)));
  const PreparationFigures figures = FiguresOf(training->program(), trace);
  EXPECT_GE(figures.epoch * 1.0001, train);
  EXPECT_LE(figures.epoch, 1.0001 * (prepare + train));
  EXPECT_LT(figures.waiting, 1);
  EXPECT_LE(figures.queue, 4);
}

// The trainer's batches in the order of its forwards.
std::vector<int> TakenOf(const Program& program, const Trace& trace) {
  std::vector<int> taken;
  for (const ExecutedInstruction& span : SpansOf(program, trace, 0)) {
    const Action& a = span.action;
    if (span.op == OpCode::kCompute && a.stage == PreparationStage::kTrain &&
        a.kind == ActionKind::kForward) {
      taken.push_back(a.micro_batch);
    }
  }
  return taken;
}

TEST(GraphTraining, FirstComeTakesEachBatchOnce) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> serial,
                               SerialGraphLosses(&SmallGraph(), Small(0, 1), 1));
  for (int workers : {1, 2, 4}) {
    for (int depth : {1, 3}) {
      GraphTrainingOptions options = Small(workers, depth);
      options.first_come = true;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, GraphTraining::Create(&SmallGraph(), options));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const GraphEpoch epoch, training->RunEpoch());
      // It is an epoch of the schedule of that order.
      PreparationSizes sizes = options.sizes;
      sizes.batches = static_cast<int>(serial.size());
      sizes.taken = TakenOf(training->program(), epoch.trace);
      EXPECT_THAT(MakePreparation(sizes), IsOk());
      if (workers == 1) {
        EXPECT_EQ(epoch.losses, serial);
      }
      for (size_t m = 0; m < serial.size(); ++m) EXPECT_NEAR(epoch.losses[m], serial[m], 1) << m;
    }
  }
}

// Stages that say nothing; the first batch is prepared when the trainer has taken another one.
class FakeStage : public StageModule {
 public:
  FakeStage(int stage, Arena* arena, absl::Notification* other)
      : stage_(stage), arena_(arena), other_(other) {}
  absl::StatusOr<std::vector<Tensor>> Forward(const Action& a, std::vector<Tensor>, bool) override {
    if (stage_ == PreparationStage::kSample && a.micro_batch == 0) {
      other_->WaitForNotification();
    }
    if (stage_ == PreparationStage::kTrain && a.micro_batch != 0 && !other_->HasBeenNotified()) {
      other_->Notify();
    }
    return std::vector<Tensor>{arena_->Allocate(DataType::kInt32, {1}, MemoryKind::kActivation)};
  }
  absl::StatusOr<std::vector<Tensor>> Backward(const Action&, std::vector<Tensor>) override {
    return std::vector<Tensor>(1);
  }
  absl::Status Recompute(const Action&) override { return absl::OkStatus(); }
  absl::Status BackwardWeight(const Action&) override { return absl::OkStatus(); }
  absl::Status Step(const Action&) override { return absl::OkStatus(); }
  absl::StatusOr<Tensor> Gradients(absl::string_view) override { return Tensor(); }
  TensorSpec InputSpec(int, int) const override { return {DataType::kInt32, {1}}; }
  TensorSpec OutputSpec(int, int) const override { return {DataType::kInt32, {1}}; }

 private:
  const int stage_;
  Arena* const arena_;
  absl::Notification* const other_;
};

TEST(FirstCome, ALateBatchIsOvertaken) {
  PreparationSizes sizes;
  sizes.workers = 2;
  sizes.batches = 6;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakePreparation(sizes));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(schedule), {}));
  absl::Notification other;
  std::vector<std::unique_ptr<Arena>> arenas;
  std::vector<std::unique_ptr<StageModule>> modules;
  std::vector<DeviceSetup> setups(3);
  auto communicators = MakeInProcessCommunicators(3, {});
  for (int d = 0; d < 3; ++d) {
    arenas.push_back(std::make_unique<Arena>());
    setups[d].arena = arenas.back().get();
    setups[d].communicator = std::move(communicators[d]);
    setups[d].modules.resize(2);
    for (int r = 0; r < 2; ++r) {
      for (int stage = 0; stage < PreparationStage::kStages; ++stage) {
        const bool here = DeviceOf(sizes, 0, stage, r) == d;
        modules.push_back(std::make_unique<FakeStage>(stage, arenas.back().get(), &other));
        setups[d].modules[r].push_back(here ? modules.back().get() : nullptr);
      }
    }
  }
  ExecutorOptions options;
  options.first_come = 4;
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto executor,
                               Executor::Create(&program, std::move(setups), options));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, executor->RunStep());
  const std::vector<int> taken = TakenOf(program, trace);
  EXPECT_FALSE(trace.devices[0].order.empty());
  EXPECT_EQ(taken.front(), 1);
  sizes.taken = taken;
  EXPECT_THAT(MakePreparation(sizes), IsOk());
}

// One worker's first batch takes 10 s, all others 1 s, training 1 s. In order the trainer begins at
// 10 s; first come, the other worker's four batches are through by then.
TEST(FirstCome, Simulated) {
  PreparationSizes sizes;
  sizes.workers = 2;
  sizes.depth = 4;
  sizes.batches = 8;
  std::vector<BatchSeconds> seconds(8);
  for (BatchSeconds& s : seconds) s.sample = 1, s.forward = s.backward = 0.5;
  seconds[0].sample = 10;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakePreparation(sizes));
  const CostTable costs = PreparationCosts(schedule, seconds);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(schedule), {}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace in_order, Simulate(program, costs));
  EXPECT_NEAR(ToSeconds(in_order.makespan), 18, 1e-6);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FirstComeRun first_come, SimulateFirstCome(sizes, seconds));
  EXPECT_NEAR(ToSeconds(first_come.trace.makespan), 14, 1e-6);
  EXPECT_EQ(TakenOf(first_come.program, first_come.trace),
            (std::vector<int>{1, 3, 5, 7, 0, 2, 4, 6}));
  sizes.taken = {2, 0, 1, 3, 4, 5, 6, 7};
  EXPECT_THAT(MakePreparation(sizes).status().message(), HasSubstr("those of a worker in order"));
}

TEST(GraphTraining, FaultsAreNamed) {
  GraphTrainingOptions options = Small(1, 1);
  options.batches.batch = 1000;
  EXPECT_THAT(GraphTraining::Create(&SmallGraph(), options).status().message(),
              HasSubstr("--batch=1000: must be at most"));
  options = Small(1, 0);
  EXPECT_THAT(GraphTraining::Create(&SmallGraph(), options).status().message(),
              HasSubstr("--depth=0"));
  options = Small(1, 1);
  options.first_come = true;
  options.sizes.copies = 2;
  EXPECT_THAT(GraphTraining::Create(&SmallGraph(), options).status().message(),
              HasSubstr("--first_come: there are 2 copies"));
}

}  // namespace
}  // namespace pipelab
