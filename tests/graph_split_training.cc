#include "tests/graph_split_training.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/data/graph_store.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "models/layers/communicator_peers.h"
#include "models/layers/graph_peers.h"
#include "models/layers/graph_trainer.h"
#include "models/zoo/graph_network.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int32_t kVertices = 900;
constexpr uint64_t kSeed = 3;

const GraphData& Data() {
  static const GraphData& data = *new GraphData([] {
    GeneratedGraph shape;
    shape.degrees_V = PowerLawDegrees(kVertices, 1.8, 2, 80, kSeed);
    shape.width = 12;
    return GenerateGraph(shape, kSeed);
  }());
  return data;
}

const std::vector<int>& Fanouts() {
  static const auto& fanouts = *new std::vector<int>{5, 4, 3};
  return fanouts;
}

std::vector<int32_t> Batch(const SplitTrainingCase& c, int64_t step) {
  std::vector<int32_t> batch;
  for (int i = 0; i < c.batch; ++i) {
    batch.push_back(static_cast<int32_t>((17 * i + 101 * step + 5) % kVertices));
  }
  return batch;
}

VertexOwners Owners(int members) {
  const CounterRng rng(kSeed, "test/owners");
  VertexOwners owners(kVertices);
  for (int32_t v = 0; v < kVertices; ++v) owners[v] = static_cast<uint8_t>(rng.Below(v, members));
  return owners;
}

ModelGraph Network(GraphConvKind kind) {
  GraphNetworkConfig config;
  config.kind = kind;
  config.width = Data().width;
  config.hidden = 16;
  config.heads = kind == GraphConvKind::kGat ? 2 : 1;
  config.classes = Data().classes;
  return BuildGraphNetwork(config).value();
}

using LogitsOf = std::map<int32_t, std::vector<float>>;  // by vertex

struct Run {
  std::vector<double> losses;
  LogitsOf first;  // the first step's
  int64_t terms = 0;
};

void AddLogits(const GraphBlock& last, const std::vector<float>& logits, LogitsOf* all) {
  const auto classes = static_cast<size_t>(Data().classes);
  ASSERT_EQ(logits.size(), classes * last.num_targets);
  for (int32_t t = 0; t < last.num_targets; ++t) {
    const auto begin = logits.begin() + static_cast<int64_t>(classes) * t;
    (*all)[last.sources[t]].assign(begin, begin + static_cast<int64_t>(classes));
  }
}

std::unique_ptr<Backend> MakeBackend(const SplitTrainingCase& c, Arena* arena) {
  return c.cpu ? MakeCpuBackend(arena) : MakeReferenceBackend(arena);
}

GraphTrainerOptions Options(const SplitTrainingCase& c) {
  GraphTrainerOptions options;
  options.data = &Data();
  options.batch = c.batch;
  options.optimizer.adam.learning_rate = 0.003f;
  return options;
}

Run OneDevice(const SplitTrainingCase& c) {
  Arena arena;
  const auto backend = MakeBackend(c, &arena);
  const ModelGraph network = Network(c.kind);
  auto trainer = GraphTrainer::Create(network, backend.get(), nullptr, Options(c)).value();
  NeighbourSampler sampler(&Data().graph, Fanouts(), kSeed);
  Run run;
  for (int step = 0; step < c.steps; ++step) {
    const GraphSample sample = sampler.Sample(step, Batch(c, step));
    run.losses.push_back(trainer->Step(WholePart(sample), nullptr).value());
    if (step == 0) AddLogits(sample.blocks.back(), trainer->logits(), &run.first);
    // Of a weight's gradient: a term for each row of a product.
    run.terms = std::max<int64_t>(run.terms, sample.blocks[0].num_sources());
  }
  return run;
}

// What a member sends in a step but for sums: of rows forward, and of gradients.
Bytes Predicted(const SplitSample& sample, int64_t width, int64_t hidden) {
  Bytes bytes;
  for (size_t b = 0; b < sample.blocks.size(); ++b) {
    const RowShuffle& shuffle = sample.blocks[b].shuffle;
    bytes += GoBytes(shuffle, b == 0 ? width : hidden);
    if (b > 0) bytes += ReturnBytes(shuffle, hidden);
  }
  return bytes;
}

void RunMember(const SplitTrainingCase& c, Communicator* communicator, Run* run) {
  Arena arena;
  const auto backend = MakeBackend(c, &arena);
  std::vector<int> ranks;
  for (int m = 0; m < c.members; ++m) ranks.push_back(m);
  // Sums of gradients are counted apart from what the sample predicts.
  CommunicatorPeers group(communicator, ranks, absl::Seconds(60));
  const VertexOwners owners = Owners(c.members);
  SplitMember member(&Data().graph, &owners, communicator->rank(), c.members, Fanouts(), kSeed);
  const ModelGraph network = Network(c.kind);
  auto trainer = GraphTrainer::Create(network, backend.get(), &group, Options(c)).value();
  Bytes sums;
  for (const LayerSpec& layer : network.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      sums += RingTraffic(Bytes(4 * p.size()), c.members, /*all_reduce=*/true);
    }
  }
  sums += RingTraffic(Bytes(12), c.members, /*all_reduce=*/true);  // the loss
  for (int step = 0; step < c.steps; ++step) {
    const Bytes before = group.traffic();
    const auto sample = SampleWithPeers(step, Batch(c, step), &member, &group, backend.get());
    ASSERT_TRUE(sample.ok()) << sample.status();
    EXPECT_EQ(group.traffic() - before, SampleBytes(*sample, c.members));
    const Bytes sampled = group.traffic();
    const auto loss = trainer->Step(SplitPart(*sample), &*sample);
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(group.traffic() - sampled - sums, Predicted(*sample, Data().width, 16));
    run->losses.push_back(*loss);
    if (step == 0) {
      AddLogits(sample->blocks.back().block, trainer->logits(), &run->first);
    }
  }
}

}  // namespace

void ExpectSplitAsOneDevice(Transport* transport, const SplitTrainingCase& c) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(c.kind) << ", " << c.members
                                  << " members");
  const Run one = OneDevice(c);
  auto communicators = transport->Connect(c.members);
  ASSERT_TRUE(communicators.ok()) << communicators.status();
  std::vector<Run> runs(communicators->size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < runs.size(); ++i) {
    threads.emplace_back(RunMember, c, (*communicators)[i].get(), &runs[i]);
  }
  for (std::thread& thread : threads) thread.join();
  for (const Run& run : runs) {
    for (const auto& [vertex, logits] : run.first) {
      const std::vector<float>& want = one.first.at(vertex);
      if (!c.cpu) {
        EXPECT_EQ(logits, want) << "vertex " << vertex;
        continue;
      }
      for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(logits[k], want[k], 2e-6f);
    }
    ASSERT_EQ(run.losses.size(), one.losses.size());
    for (size_t step = 0; step < run.losses.size(); ++step) {
      // As LossTolerance (experiments/comparison.h).
      const double tolerance = static_cast<double>(step + 1) * static_cast<double>(one.terms) *
                               double{std::numeric_limits<float>::epsilon()} * one.losses[0];
      EXPECT_NEAR(run.losses[step], one.losses[step], tolerance) << "step " << step;
      EXPECT_EQ(run.losses[step], runs[0].losses[step]);  // all members know the same loss
    }
  }
  EXPECT_NE(one.losses.back(), one.losses.front());  // it did step
}

}  // namespace pipelab
