// Our training against PyTorch's, by the table that tools/pytorch/train_networks.py made from the
// same weights and batches: loss and gradient norm of each of 20 steps, in the serial loop for
// every network of the zoo that trains, and in pipelines.
//
// How far may we be from PyTorch's float64? We compute in float32, where each operation rounds by
// up to half an epsilon; training carries an error of one step into the next, and how much it grows
// there depends on the network: near the kink of a ReLU, or where the maximum of a pool changes
// place, it jumps. The table has what this makes of PyTorch's own float32, the largest of three
// runs that round in different places. Ours round in yet other places, so their error is of that
// size and not the same: up to step k we allow kSpread times the largest error of the table's
// steps 0 to k, plus kRoundings epsilons of the value for what a single run's luck leaves out. The
// first step has no growth behind it: kRoundings epsilons alone.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/factory.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_layers.h"
#include "models/zoo/branch_stages.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/runtime/training.h"
#include "tests/pytorch/loss_table.h"
#include "tests/pytorch/networks.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr size_t kSteps = 20;
constexpr double kSpread = 4;
constexpr double kRoundings = 16;
constexpr char kTable[] = "tests/pytorch/losses.csv";

LossTable Table() {
  auto table = ReadLossTable(kTable);
  EXPECT_THAT(table, IsOk());
  return table.ok() ? *std::move(table) : LossTable();
}

// Follows one of the table's columns, step by step.
class Follower {
 public:
  // How far the value of the next step may be from the table's.
  double Allowed(const TableValue& expected) {
    const double roundings =
        kRoundings * std::numeric_limits<float>::epsilon() * std::abs(expected.value);
    largest_error_ = std::max(largest_error_, expected.float32_error);
    return first_ ? (first_ = false, roundings) : roundings + kSpread * largest_error_;
  }

 private:
  double largest_error_ = 0;
  bool first_ = true;
};

double Norm(const std::map<std::string, std::vector<float>>& gradients) {
  double squares = 0;
  for (const auto& [name, gradient] : gradients) {
    for (double g : gradient) squares += g * g;
  }
  return std::sqrt(squares);
}

class PyTorchLosses : public testing::TestWithParam<int> {
 protected:
  const ComparedNetwork network_ = ComparedNetworks(Sizes::kTable)[GetParam()];
  const RandomData data_{TestFieldsOf(network_.graph)};
};

TEST_P(PyTorchLosses, SerialTrainingHasThem) {
  const LossTable table = Table();
  ASSERT_EQ(table.count(network_.name), 1) << "no rows in " << kTable;
  const std::vector<LossTableRow>& rows = table.at(network_.name);
  ASSERT_EQ(rows.size(), kSteps);
  SerialOptions options;
  options.micro_batch_size = network_.micro_batch_size;
  options.num_micro_batches = network_.num_micro_batches;
  options.data = &data_;
  options.seed = kComparedSeed;
  options.optimizer = network_.optimizer;
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer,
                               SerialTrainer::Create(network_.graph, backend.get(), options));
  Follower losses, norms;
  for (size_t step = 0; step < kSteps; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto gradients, trainer->LossGradients());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const double loss, trainer->Step());
    const LossTableRow& row = rows[step];
    EXPECT_NEAR(loss, row.loss.value, losses.Allowed(row.loss)) << "step " << step;
    EXPECT_NEAR(Norm(gradients), row.gradient_norm.value, norms.Allowed(row.gradient_norm))
        << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PyTorchLosses,
                         testing::Range(0,
                                        static_cast<int>(ComparedNetworks(Sizes::kTable).size())),
                         [](const auto& info) {
                           return ComparedNetworks(Sizes::kTable)[info.param].name;
                         });

// The losses and gradient norms of a pipeline, against the table's.
void CheckPipeline(const std::string& name, const std::string& scheme, int devices,
                   int stages_of_branch) {
  SCOPED_TRACE(testing::Message() << name << ", " << scheme << ", devices " << devices);
  const std::vector<ComparedNetwork> networks = ComparedNetworks(Sizes::kTable);
  const auto n = std::find_if(networks.begin(), networks.end(),
                              [&](const ComparedNetwork& c) { return c.name == name; });
  ASSERT_NE(n, networks.end());
  const RandomData data(TestFieldsOf(n->graph));
  TrainingOptions options;
  options.config.scheme = scheme;
  options.config.pipeline = devices;
  options.config.micro_batches = n->num_micro_batches;
  options.config.micro_batch_size = n->micro_batch_size;
  options.seed = kComparedSeed;
  options.optimizer = n->optimizer;
  if (n->optimizer.clip_norm == 0) {  // the norm, and no clipping
    options.optimizer.clip_norm = std::numeric_limits<double>::infinity();
  }
  if (stages_of_branch > 0) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> stage_of_layer,
                                 BranchStages(n->graph, stages_of_branch));
    options.config.layout = StagesText(stage_of_layer);
    options.config.pipeline = *std::max_element(stage_of_layer.begin(), stage_of_layer.end()) + 1;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(n->graph, data, options));
  const LossTable table = Table();
  Follower losses, norms;
  for (size_t step = 0; step < kSteps; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, training->Step());
    const LossTableRow& row = table.at(name)[step];
    EXPECT_NEAR(done.loss, row.loss.value, losses.Allowed(row.loss)) << "step " << step;
    EXPECT_NEAR(done.gradient_norm, row.gradient_norm.value, norms.Allowed(row.gradient_norm))
        << "step " << step;
  }
}

TEST(PyTorchPipelines, HaveThem) {
  CheckPipeline("gpt", "gpipe", 3, 0);
  CheckPipeline("gpt_tied", "1f1b", 2, 0);
  CheckPipeline("transformer", "1f1b", 4, 0);
  CheckPipeline("llama", "1f1b", 3, 0);
  CheckPipeline("mixtral", "1f1b", 3, 0);
  CheckPipeline("qwen2", "1f1b", 3, 0);
  CheckPipeline("dlrm", "graph", 0, 1);
  CheckPipeline("unet", "zb_h1", 2, 0);
  CheckPipeline("gpt_sgd", "1f1b", 3, 0);  // clips
  CheckPipeline("mmt_rmsprop", "graph", 0, 1);
}

TEST(PyTorchTable, HasNoOtherNetworks) {
  std::set<std::string> compared;
  for (const ComparedNetwork& n : ComparedNetworks(Sizes::kTable)) compared.insert(n.name);
  for (const auto& [name, rows] : Table()) EXPECT_EQ(compared.count(name), 1) << name;
}

// Every layer that runs is in one of the networks, but those on a graph, which take blocks.
TEST(PyTorchTable, HasEveryKindOfLayer) {
  std::set<std::string> compared = {"sage_conv", "gin_conv", "gat_conv"};
  // Parts of layers that are compared: vocabulary_shards_test.
  compared.insert({"vocabulary_embedding", "vocabulary_loss", "vocabulary_shard"});
  for (const ComparedNetwork& n : ComparedNetworks(Sizes::kTable)) {
    for (const LayerSpec& layer : n.graph.layers) compared.insert(layer.kind);
  }
  for (const std::string& kind : LayerKinds()) EXPECT_EQ(compared.count(kind), 1) << kind;
}

TEST(LossTableTest, NamesLinesThatAreNotRows) {
  constexpr char kStart[] =
      "# a comment\nnetwork,step,loss,gradient_norm,loss_float32_error,gradient_norm_float32_"
      "error\n";
  EXPECT_THAT(ParseLossTable(std::string(kStart) + "gpt,0,1,2,3e-7,4e-7\n", "a"), IsOk());
  for (const char* row : {"gpt,1,1,2,0,0", "gpt,0,1,2,0", "gpt,0,1,nan,0,0", "gpt,0,1,2,-1,0",
                          "gpt,0,1,2,0,0\ngpt,0,1,2,0,0", ",0,1,2,0,0", "gpt,0,x,2,0,0"}) {
    const auto table = ParseLossTable(std::string(kStart) + row, "a.csv");
    ASSERT_FALSE(table.ok()) << row;
    EXPECT_THAT(std::string(table.status().message()), testing::StartsWith("a.csv:"));
  }
  EXPECT_FALSE(ParseLossTable(kStart, "a").ok());
  EXPECT_FALSE(ParseLossTable("gpt,0,1,2,0,0\n", "a").ok());
}

}  // namespace
}  // namespace pipelab
