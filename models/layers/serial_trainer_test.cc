#include "models/layers/serial_trainer.h"

#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "models/data/token_fields.h"
#include "models/layers/test_layers.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Counts up by one: the next token is certain, so a model can learn it.
class Counting : public BatchSource {
 public:
  Counting() : BatchSource(TokenFields(6, 11)) {}
  void FillIds(int field, int64_t step, int64_t first_sample,
               absl::Span<int32_t> out_M) const override {
    const size_t first = static_cast<size_t>(step + first_sample * 5 + field);
    for (size_t i = 0; i < out_M.size(); ++i) out_M[i] = static_cast<int32_t>((first + i) % 11);
  }
};

SerialOptions Options(const BatchSource* data) {
  SerialOptions o;
  o.micro_batch_size = 2;
  o.num_micro_batches = 3;
  o.data = data;
  o.seed = 3;
  o.optimizer.adam.learning_rate = 0.01f;
  return o;
}

TEST(SerialTrainer, Learns) {
  for (bool tied : {false, true}) {
    const Counting data;
    Arena arena;
    const auto backend = MakeCpuBackend(&arena);
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        auto trainer,
        SerialTrainer::Create(*BuildGpt(SmallGpt(0, tied)), backend.get(), Options(&data)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const double first, trainer->Step());
    EXPECT_NEAR(first, std::log(11.0), 0.1);  // it knows nothing: uniform over 11
    for (int i = 0; i < 59; ++i) ASSERT_THAT(trainer->Step(), IsOk());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const double held_out, trainer->Evaluate(data, 1000, 0, 4));
    EXPECT_LT(held_out, 0.1) << "tied: " << tied;
  }
}

// The same batch in fewer, larger micro-batches, and another backend: the same training but for
// rounding. A loss of about 2.4 carries some hundred float32 roundings (1e-5 at worst); Adam may
// turn a gradient that is all rounding into a move of the rate, 0.01, but such a weight has no
// gradient to move the loss by.
TEST(SerialTrainer, MicroBatchesAndBackendsAgree) {
  const RandomTokens data(6, 11);
  std::vector<double> losses[2];
  for (int variant : {0, 1}) {
    Arena arena;
    const auto backend = variant == 0 ? MakeCpuBackend(&arena) : MakeReferenceBackend(&arena);
    SerialOptions options = Options(&data);
    if (variant == 1)
      std::tie(options.micro_batch_size, options.num_micro_batches) = std::make_pair(6, 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer, SerialTrainer::Create(*BuildGpt(SmallGpt(0.1, true)),
                                                                     backend.get(), options));
    for (int step = 0; step < 5; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const double loss, trainer->Step());
      losses[variant].push_back(loss);
    }
  }
  for (int step = 0; step < 5; ++step) EXPECT_NEAR(losses[0][step], losses[1][step], 1e-4) << step;
  EXPECT_NE(losses[0][0], losses[0][4]);
}

// Slices of the tokens compute the same sums in parts: the same training but for rounding, as
// above.
TEST(SerialTrainer, TokenSlicesTrainAsWholeSamples) {
  const RandomTokens data(6, 11);
  std::vector<double> whole;
  for (const std::vector<int64_t>& slices :
       {std::vector<int64_t>{}, {6}, {3, 3}, {1, 4, 1}, {1, 1, 1, 1, 1, 1}}) {
    Arena arena;
    const auto backend = MakeCpuBackend(&arena);
    SerialOptions options = Options(&data);
    options.slices = slices;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer, SerialTrainer::Create(*BuildGpt(SmallGpt(0.1, true)),
                                                                     backend.get(), options));
    std::vector<double> losses;
    for (int step = 0; step < 5; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const double loss, trainer->Step());
      losses.push_back(loss);
    }
    EXPECT_EQ(arena.current_transient(), Bytes(0));
    if (slices.empty()) whole = losses;
    for (int step = 0; step < 5; ++step) EXPECT_NEAR(losses[step], whole[step], 1e-4) << step;
    EXPECT_NEAR(losses[0], whole[0], 1e-6) << "the same forward, before any update";
    if (slices.size() == 1) {
      EXPECT_EQ(losses, whole) << "one slice is the whole sample";
    }
  }
}

TEST(SerialTrainer, TiedTablesHaveOneValueAndEveryParameterMoves) {
  const RandomTokens data(6, 11);
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  const ModelGraph graph = *BuildGpt(SmallGpt(0, true));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer,
                               SerialTrainer::Create(graph, backend.get(), Options(&data)));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto before, trainer->ParameterValue("head/table"));
  ASSERT_THAT(trainer->Step(), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto head, trainer->ParameterValue("head/table"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto embedding, trainer->ParameterValue("embedding/tokens"));
  EXPECT_EQ(head, embedding);
  EXPECT_NE(head, before);
  EXPECT_EQ(trainer->losses().size(), 3);
  EXPECT_THAT(trainer->ParameterValue("nothing"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"nothing\"")));
}

TEST(SerialTrainer, RefusesWhatItCannotTrain) {
  const RandomTokens data(6, 11), longer(7, 11);
  Arena arena;
  const auto backend = MakeReferenceBackend(&arena);
  const auto expect = [&](ModelGraph graph, SerialOptions options, const char* what) {
    EXPECT_THAT(SerialTrainer::Create(std::move(graph), backend.get(), options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  const ModelGraph graph = *BuildGpt(SmallGpt(0, false));
  expect(graph, Options(&longer), "the data has ids below 11 [7]");
  SerialOptions options = Options(&data);
  options.num_micro_batches = 0;
  expect(graph, options, "not 2 and 0");
  options = Options(&data);
  options.slices = {4, 3};
  expect(graph, options, "token slices of 4,3 tokens");
  options.slices = {3, 3};
  ModelGraph whole_only = graph;
  whole_only.layers[2].slice_costs = nullptr;
  expect(whole_only, options,
         "\"block0/mlp\": a gpt_mlp takes whole samples and cannot work on token slices");
  ModelGraph branched = graph;
  branched.layers[2].inputs = {0};
  expect(branched, Options(&data), "\"block0/attention\": nothing takes its output");
  options = Options(&data);
  options.stage_of_layer = {0, 1};
  expect(graph, options, "6 layers got the stages of 2");
}

}  // namespace
}  // namespace pipelab
