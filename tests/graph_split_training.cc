#include "tests/graph_split_training.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/comm/process_group.h"
#include "kernels/compute_device.h"
#include "kernels/reference/reference_backend.h"
#include "models/data/graph_batch.h"
#include "models/data/graph_store.h"
#include "models/data/split_sampler.h"
#include "models/layers/graph_peers.h"
#include "pipelines/graphs/graph_training.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int32_t kVertices = 900;
constexpr uint64_t kSeed = 3;
constexpr int64_t kHidden = 16;

const GraphData& Data() {
  static const GraphData& data = *new GraphData([] {
    GeneratedGraph shape;
    shape.degrees_V = PowerLawDegrees(kVertices, 1.8, 2, 80, kSeed);
    shape.width = 12;
    return GenerateGraph(shape, kSeed);
  }());
  return data;
}

VertexOwners Owners(int members) {
  const CounterRng rng(kSeed, "test/owners");
  VertexOwners owners(kVertices);
  for (int32_t v = 0; v < kVertices; ++v) owners[v] = static_cast<uint8_t>(rng.Below(v, members));
  return owners;
}

struct TrainedRun {
  std::vector<double> losses;                    // of this process's members
  std::map<int32_t, std::vector<float>> logits;  // [vertex] of the first step
  std::vector<std::vector<Bytes>> sent;          // [step][member here] in passes
};

// One step an epoch, so that each has its trace.
GraphTrainingOptions Options(const SplitTrainingCase& c, const ComputeDevices* devices) {
  GraphTrainingOptions options;
  options.sizes.workers = c.workers;
  options.batches.batch = c.batch;
  options.batches.fanouts = {5, 4, 3};
  options.batches.seed = kSeed;
  options.model.kind = c.kind;
  options.model.hidden = kHidden;
  options.model.heads = c.kind == GraphConvKind::kGat ? 2 : 1;
  options.train.optimizer.adam.learning_rate = 0.003f;
  options.train.keep_logits = true;
  options.steps_of_epoch = 1;
  options.trainers = devices;
  return options;
}

absl::StatusOr<TrainedRun> Train(const GraphTrainingOptions& options, int steps) {
  PIPELAB_ASSIGN_OR_RETURN(auto training, GraphTraining::Create(&Data(), options));
  TrainedRun run;
  for (int step = 0; step < steps; ++step) {
    PIPELAB_ASSIGN_OR_RETURN(GraphEpoch epoch, training->RunEpoch());
    run.losses.push_back(epoch.losses[0]);
    if (step == 0) run.logits = std::move(epoch.logits);
    std::vector<Bytes>& sent = run.sent.emplace_back();
    for (size_t d = 0; d < epoch.trace.devices.size(); ++d) {
      const bool trains = d % DevicesOfCopy(options.sizes) == 0;
      if (trains) sent.emplace_back();
      sent.back() += epoch.trace.devices[d].tensor_bytes;
    }
  }
  return run;
}

// What a member sends in a step but for sums: ids, rows forward, and gradients.
Bytes Predicted(const SplitSample& sample, int members) {
  Bytes bytes = SampleBytes(sample, members);
  for (size_t b = 0; b < sample.blocks.size(); ++b) {
    const RowShuffle& shuffle = sample.blocks[b].shuffle;
    bytes += GoBytes(shuffle, b == 0 ? Data().width : kHidden);
    if (b > 0) bytes += ReturnBytes(shuffle, kHidden);
  }
  return bytes;
}

// Sums over the processes' shares, in order.
std::vector<double> OfAllProcesses(Transport* transport, const std::vector<double>& own) {
  if (transport->processes() == nullptr) return own;
  std::string text;
  for (double loss : own) absl::StrAppendFormat(&text, "%a ", loss);
  const auto all = transport->processes()->ToAll(text, absl::Minutes(1)).value();
  std::vector<double> sums(own.size());
  for (const std::string& of_process : all) {
    const char* at = of_process.c_str();
    for (double& sum : sums) {
      char* end = nullptr;
      sum += std::strtod(at, &end);
      at = end;
    }
  }
  return sums;
}

}  // namespace

void ExpectSplitAsOneDevice(Transport* transport, const SplitTrainingCase& c) {
  SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(c.kind) << ", " << c.members
                                  << " members, " << c.workers << " workers");
  const ComputeDevices reference([](int count) -> absl::StatusOr<std::vector<ComputeDevice>> {
    return std::vector<ComputeDevice>(count, ComputeDevice{nullptr, &MakeReferenceBackend});
  });
  GraphTrainingOptions options = Options(c, c.cpu ? nullptr : &reference);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainedRun one, Train(options, c.steps));
  const VertexOwners owners = Owners(c.members);
  options.owners = &owners;
  options.sizes.copies = c.members;
  options.transport = transport;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainedRun split, Train(options, c.steps));
  for (const auto& [vertex, logits] : split.logits) {
    const std::vector<float>& want = one.logits.at(vertex);
    if (!c.cpu) {
      EXPECT_EQ(logits, want) << "vertex " << vertex;
      continue;
    }
    for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(logits[k], want[k], 2e-6f);
  }
  const GraphBatches batches(&Data(), options.batches);
  std::vector<SplitMember> members =
      MakeSplitMembers(&Data().graph, &owners, c.members, options.batches.fanouts, kSeed);
  const size_t here = split.sent[0].size();
  const size_t first =
      transport->processes() == nullptr ? 0 : transport->processes()->rank() * here;
  int64_t terms = 0;  // of a weight's gradient: one for each row of a product
  const std::vector<double> losses = OfAllProcesses(transport, split.losses);
  for (int step = 0; step < c.steps; ++step) {
    const std::vector<SplitSample> samples = SampleOfAll(step, batches.Targets(step, 0), &members);
    int64_t rows = 0;
    for (const SplitSample& s : samples) rows += static_cast<int64_t>(s.inputs.size());
    terms = std::max(terms, rows);
    for (size_t m = 0; m < here; ++m) {
      EXPECT_EQ(split.sent[step][m], Predicted(samples[first + m], c.members)) << "step " << step;
    }
    // As LossTolerance (experiments/training/comparison.h).
    const double tolerance = static_cast<double>(step + 1) * static_cast<double>(terms) *
                             double{std::numeric_limits<float>::epsilon()} * one.losses[0];
    EXPECT_NEAR(losses[step], one.losses[step], tolerance) << "step " << step;
  }
  EXPECT_NE(one.losses.back(), one.losses.front());  // it did step
}

}  // namespace pipelab
