// A network and its data from files of the user's own, trained by the serial loop.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/data_file.h"
#include "models/files/network_json.h"
#include "models/layers/serial_trainer.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

// First and last of so many steps.
std::pair<double, double> Losses(const ModelGraph& graph, const std::string& path, int steps,
                                 double* held_out) {
  SerialOptions options;
  options.micro_batch_size = 8;
  options.num_micro_batches = 2;
  options.optimizer.adam.learning_rate = 0.01f;
  DataFileOptions file;
  file.batch_samples = 16;
  const DataFile data = *OpenDataFile("--data", path, graph, file);
  options.data = data.train.get();
  Arena arena;
  const auto backend = MakeCpuBackend(&arena);
  const auto trainer = *SerialTrainer::Create(graph, backend.get(), options);
  std::pair<double, double> losses = {*trainer->Step(), 0};
  for (int i = 1; i < steps; ++i) losses.second = *trainer->Step();
  *held_out = *trainer->Evaluate(*data.held_out, 0, 0, 16);
  return losses;
}

// y = 3 a - b, standardised: knowing nothing costs 1.
TEST(OwnData, ARegressionOfATableIsLearned) {
  std::string text = "a,b,y\n";
  for (int r = 0; r < 200; ++r) {
    const double a = std::sin(r), b = std::cos(3 * r);
    absl::StrAppend(&text, a, ",", b, ",", 3 * a - b, "\n");
  }
  const std::string path = absl::StrCat(testing::TempDir(), "/line.csv");
  ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, ParseNetwork(R"({"name": "net", "layers": [
      {"name": "in", "kind": "data_input", "field": "features", "shape": [2]},
      {"name": "hidden", "kind": "dense", "out": 16, "activation": "relu"},
      {"name": "out", "kind": "dense", "out": 1},
      {"name": "loss", "kind": "element_loss", "loss": "squared_error"}]})",
                                                                    "net.json"));
  double held_out = 0;
  const auto [first, last] = Losses(graph, path, 150, &held_out);
  EXPECT_GT(first, 0.3);
  EXPECT_LT(last, first / 10);
  EXPECT_LT(held_out, 0.1);
}

// Letters in turn: each follows from the one before.
TEST(OwnData, ATextIsLearned) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text.push_back(static_cast<char>('a' + i % 7));
  const std::string path = absl::StrCat(testing::TempDir(), "/letters.txt");
  ASSERT_THAT(WriteFileAtomically(path, text), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, ParseNetwork(R"({"name": "lm", "layers": [
      {"name": "embedding", "kind": "gpt_embedding", "tokens": 8, "hidden": 16, "vocabulary": 10},
      {"name": "attention", "kind": "gpt_attention", "heads": 2},
      {"name": "mlp", "kind": "gpt_mlp"},
      {"name": "head", "kind": "gpt_head", "vocabulary": 10}]})",
                                                                    "lm.json"));
  double held_out = 0;
  const auto [first, last] = Losses(graph, path, 60, &held_out);
  EXPECT_NEAR(first, std::log(10.0), 0.2);
  EXPECT_LT(last, 0.5);
  EXPECT_LT(held_out, 0.5);
}

}  // namespace
}  // namespace pipelab
