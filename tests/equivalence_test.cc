// Every scheme trains like the plain serial loop: for each scheme, number of devices and number of
// micro-batches that it serves, the losses are the same bits where gradients come in micro-batch
// order, and within the derived tolerance elsewhere. One test case a (devices, micro-batches) pair.
//
// Over 10 steps, since an order of sums that is not the serial one shows in the second loss; and
// over 50, where small differences have the time to grow, for a set that covers every scheme, every
// number of devices and of micro-batches, and every option: all schemes on 4 devices with 8
// micro-batches, 1f1b everywhere, and the smaller sizes of each option.
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/training/comparison.h"
#include "gtest/gtest.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/ir/weight_ring.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kFewSteps = 10, kManySteps = 50;

// What a serial loop's losses depend on here.
struct SerialLoop {
  bool tied = false;
  int micro_batches = 0;
  int steps = kManySteps;
  float learning_rate = SmallAdam().adam.learning_rate;
  std::vector<int> sum_of_micro_batch = {};
  std::vector<std::vector<int>> sums_of_stage = {};
  std::vector<int> stage_of_layer = {};
  std::vector<int64_t> slices = {};

  auto Key() const {
    return std::tie(tied, micro_batches, steps, learning_rate, sum_of_micro_batch, sums_of_stage,
                    stage_of_layer, slices);
  }
  bool operator<(const SerialLoop& other) const { return Key() < other.Key(); }
};

// Many schemes and sizes are compared with the same loop: each trains once.
const std::vector<double>& LossesOf(const SerialLoop& loop) {
  static auto* const all = new std::map<SerialLoop, std::vector<double>>();
  const auto [place, is_new] = all->try_emplace(loop);
  if (is_new) {
    const std::unique_ptr<BatchSource> batches = SmallText();
    SerialOptions options = SmallSerial(*batches, loop.micro_batches);
    options.optimizer.adam.learning_rate = loop.learning_rate;
    options.sum_of_micro_batch = loop.sum_of_micro_batch;
    options.sums_of_stage = loop.sums_of_stage;
    options.stage_of_layer = loop.stage_of_layer;
    options.slices = loop.slices;
    place->second = SerialLosses(SmallGpt(loop.tied), options, loop.steps);
  }
  return place->second;
}

// The plain loop's. It has trained something: over all steps the loss falls by a tenth, and after
// the first ones that of the next batch is below what it was before training.
std::vector<double> PlainLosses(bool tied, int micro_batches, int steps) {
  SerialLoop loop{tied, micro_batches};
  std::vector<double> losses = LossesOf(loop);
  EXPECT_EQ(losses.size(), size_t{kManySteps});
  if (losses.size() != kManySteps) return {};
  EXPECT_LT(losses.back(), 0.9 * losses.front()) << "the test must train something";
  loop.steps = kFewSteps;
  loop.learning_rate = 1e-30f;  // no parameter changes
  EXPECT_LT(losses[kFewSteps - 1], 0.99 * LossesOf(loop).back()) << "so must its first steps";
  losses.resize(steps);
  return losses;
}

using Sizes = std::tuple<int, int>;  // devices, micro-batches
constexpr Sizes kCoveringSizes = {4, 8};

class Equivalence : public testing::TestWithParam<Sizes> {
 protected:
  // Trains and compares; whether the scheme serves the sizes.
  bool Check(const std::string& scheme, bool recompute, int steps) {
    const int all_micro_batches = std::get<1>(GetParam());
    const std::vector<double> serial = PlainLosses(/*tied=*/false, all_micro_batches, steps);
    if (serial.empty()) return true;
    SchemeResult result;
    TrainingOptions options;
    options.config = sizes_;
    options.config.scheme = scheme;
    options.config.pipeline = std::get<0>(GetParam());
    options.config.micro_batches = all_micro_batches;
    options.config.recompute = RecomputeIf(recompute);
    if (sizes_.concatenation == Concatenation::kBackwardHalving) {
      options.config.micro_batches /= 2;  // those of full size
    }
    options.config.micro_batch_size = kSmallSamples / sizes_.data;
    options.optimizer = SmallAdam();
    options.trace = false;
    result.config = options.config;
    if (const auto schedule =
            MakeSchedule(scheme, SchemeSizes(options.config, options.config.copies()));
        !schedule.ok()) {
      EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
      return false;
    }
    auto training = PipelineTraining::Create(graph_, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return true;
    result.must_be_bit_equal = KeepsMicroBatchOrder((*training)->program().schedule);
    result.num_slices = (*training)->program().schedule.num_slices;
    for (int step = 0; step < steps; ++step) {
      const absl::StatusOr<TrainingStep> done = (*training)->Step();
      EXPECT_THAT(done, IsOk());
      if (!done.ok()) return true;
      result.losses.push_back(done->loss);
    }
    // A group's sum of a micro-batch has as many terms as members.
    result.config.micro_batches *= sizes_.data;
    // Within the derived tolerance of the plain loop; and the bits of a loop that sums by replica.
    const Equality equality = CompareLosses(result, serial);
    const Placement& placement = (*training)->program().schedule.placement;
    SerialLoop loop{/*tied=*/false, all_micro_batches, steps};
    if ((*training)->program().schedule.weights_travel && placement.num_replicas() > 1) {
      // Sums that travel: added in the ring's order.
      loop.sums_of_stage = WeightRing::Make((*training)->program().schedule)->sums;
      loop.stage_of_layer = (*training)->partition().stage_of_layer;
      EXPECT_EQ(result.losses, LossesOf(loop)) << scheme;
    } else if (placement.num_replicas() == 2 && sizes_.data == 1) {
      loop.sum_of_micro_batch = placement.replica_of_micro_batch;
      EXPECT_EQ(result.losses, LossesOf(loop)) << scheme;
    }
    if (result.num_slices > 1 && sizes_.data == 1) {  // and of a loop that computes slice by slice
      loop = {/*tied=*/false, all_micro_batches, steps};
      loop.slices = (*training)->slices();
      EXPECT_EQ(result.losses, LossesOf(loop)) << scheme;
    }
    EXPECT_TRUE(equality.ok) << scheme << (recompute ? " with recompute: " : ": ") << equality.text;
    // Before the first update nothing can have been summed in another order, but for attention that
    // comes in slices: sums of 8 terms, seven layers deep.
    if (sizes_.data > 1) {
      EXPECT_NEAR(result.losses.front(), serial.front(), 1e-6 * serial.front()) << scheme;
    } else if (result.num_slices == 1) {
      EXPECT_EQ(result.losses.front(), serial.front()) << scheme;
    } else {
      EXPECT_NEAR(result.losses.front(), serial.front(), 1e-6 * serial.front()) << scheme;
    }
    return true;
  }

  StepConfig sizes_ = CutByLayers();  // options of a scheme beyond devices and micro-batches
  const ModelGraph graph_ = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches_ = SmallText();
};

TEST_P(Equivalence, EverySchemeTrainsAsSerial) {
  const bool covering = GetParam() == kCoveringSizes;
  for (const Scheme& scheme : Catalog()) {
    if (!TrainsAsSerial(scheme)) continue;  // asynchronous_test.cc, local_learning_test.cc
    const bool many = covering || scheme.name == "1f1b";
    const bool served = Check(std::string(scheme.name), /*recompute=*/scheme.name == "gpipe",
                              many ? kManySteps : kFewSteps);
    // What no scheme may refuse.
    if (covering || scheme.name == "gpipe" || scheme.name == "1f1b" ||
        scheme.name == "breadth_first") {
      EXPECT_TRUE(served) << scheme.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Grid, Equivalence,
                         testing::Combine(testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(1, 2, 4, 5, 8, 16)),
                         [](const testing::TestParamInfo<Sizes>& info) {
                           return "Devices" + std::to_string(std::get<0>(info.param)) +
                                  "MicroBatches" + std::to_string(std::get<1>(info.param));
                         });

// What only some schemes have: Chimera's four replicas, forwards of two micro-batches at a time and
// backwards of halves; larger groups of interleaved schemes.
class SchemeOptions : public Equivalence {};

TEST_P(SchemeOptions, TrainAsSerial) {
  const int steps = std::get<1>(GetParam()) == 8 ? kManySteps : kFewSteps;
  sizes_.replicas = 4;
  EXPECT_TRUE(Check("chimera", /*recompute=*/false, steps));
  sizes_.replicas = 2;
  sizes_.concatenation = Concatenation::kForwardDoubling;
  EXPECT_TRUE(Check("chimera", /*recompute=*/true, steps));
  sizes_.concatenation = Concatenation::kBackwardHalving;
  EXPECT_TRUE(Check("chimera", /*recompute=*/false, steps));
  sizes_ = CutByLayers();
  sizes_.group_size = 6;
  EXPECT_TRUE(Check("interleaved", /*recompute=*/false, steps));
  EXPECT_TRUE(Check("interleaved_zb1p", /*recompute=*/false, steps));
}

INSTANTIATE_TEST_SUITE_P(Grid, SchemeOptions, testing::Values(Sizes{4, 8}, Sizes{4, 12}),
                         [](const testing::TestParamInfo<Sizes>& info) {
                           return "MicroBatches" + std::to_string(std::get<1>(info.param));
                         });

// Each device a group of two, which halve every micro-batch's rows.
class DataParallel : public Equivalence {};

TEST_P(DataParallel, EverySchemeTrainsAsSerial) {
  const int steps = std::get<0>(GetParam()) == 2 ? kManySteps : kFewSteps;
  sizes_.data = 2;
  int served = 0;
  for (const Scheme& scheme : Catalog()) {
    if (!TrainsAsSerial(scheme)) continue;
    served += Check(std::string(scheme.name), /*recompute=*/scheme.name == "gpipe", steps);
  }
  EXPECT_GT(served, 10);
}

INSTANTIATE_TEST_SUITE_P(Grid, DataParallel, testing::Values(Sizes{2, 4}, Sizes{4, 8}),
                         [](const testing::TestParamInfo<Sizes>& info) {
                           return "Devices" + std::to_string(std::get<0>(info.param));
                         });

// Tied embeddings: the two copies of the table, in different stages or replicas, keep one value.
class TiedEquivalence : public Equivalence {};

TEST_P(TiedEquivalence, TiedTablesKeepOneValue) {
  const ModelGraph tied = SmallGpt(/*tied=*/true);
  const int steps = std::get<0>(GetParam()) == 2 ? kManySteps : kFewSteps;
  const int micro_batches = std::get<1>(GetParam());
  const std::vector<double> serial = PlainLosses(/*tied=*/true, micro_batches, steps);
  ASSERT_EQ(serial.size(), static_cast<size_t>(steps));
  for (const Scheme& scheme : Catalog()) {
    if (!TrainsAsSerial(scheme)) continue;
    TrainingOptions options;
    options.config.scheme = std::string(scheme.name);
    options.config.pipeline = std::get<0>(GetParam());
    options.config.micro_batches = micro_batches;
    options.config.micro_batch_size = kSmallSamples;
    options.optimizer = SmallAdam();
    options.trace = false;
    if (!Serves(options.config)) continue;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(tied, *batches_, options));
    SchemeResult result;
    result.config = options.config;
    result.must_be_bit_equal = KeepsMicroBatchOrder(training->program().schedule);
    result.num_slices = training->program().schedule.num_slices;
    for (int step = 0; step < steps; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, training->Step());
      result.losses.push_back(done.loss);
    }
    if (result.num_slices > 1) {
      SerialLoop loop{/*tied=*/true, micro_batches, steps};
      loop.slices = training->slices();
      EXPECT_EQ(result.losses, LossesOf(loop)) << scheme.name;
    }
    const Equality equality = CompareLosses(result, serial);
    EXPECT_TRUE(equality.ok) << scheme.name << ": " << equality.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Grid, TiedEquivalence, testing::Values(Sizes{2, 4}, Sizes{4, 8}),
                         [](const testing::TestParamInfo<Sizes>& info) {
                           return "Devices" + std::to_string(std::get<0>(info.param));
                         });

// A loss that is off by more than rounding is seen.
// A serial loop from other values says how far rounding goes, not how far a fault may.
TEST(CompareLosses, KnowsWhatTrainingAmplifies) {
  const std::vector<double> serial(3000, 2.0);
  SchemeResult result;
  result.config.micro_batches = 4;
  result.losses = result.rounded = serial;
  for (size_t i = 0; i < serial.size(); ++i) {
    const double grown = std::min(0.05, 1e-8 * std::exp(static_cast<double>(i) / 100));
    result.losses[i] += grown;
    result.rounded[i] -= grown / 3;
  }
  EXPECT_TRUE(CompareLosses(result, serial).ok);
  EXPECT_EQ(CompareLosses(result, serial).text,
            "within 5.0e-02: training amplifies rounding, and a serial loop from the next larger "
            "values differs by 1.7e-02");
  result.losses[20] += 0.02;
  EXPECT_FALSE(CompareLosses(result, serial).ok);
  result.losses[20] = serial[20];
  result.rounded.clear();
  EXPECT_EQ(CompareLosses(result, serial).text.find("DIFFERS by 5.0e-02"), 0);
}

TEST(CompareLosses, SeesADifference) {
  SchemeResult result;
  result.config.scheme = "1f1b";
  result.config.micro_batches = 8;
  const std::vector<double> serial = {4.0, 3.0, 2.0};
  result.losses = serial;
  result.must_be_bit_equal = true;
  EXPECT_EQ(CompareLosses(result, serial).text, "bit-equal");
  result.losses[1] += 1e-12;
  EXPECT_FALSE(CompareLosses(result, serial).ok);
  result.must_be_bit_equal = false;
  EXPECT_TRUE(CompareLosses(result, serial).ok);
  result.losses[2] += 1e-3;
  const Equality e = CompareLosses(result, serial);
  EXPECT_FALSE(e.ok);
  EXPECT_NE(e.text.find("at step 3"), std::string::npos) << e.text;
  // The bits of the loop that sums by replica: rounding alone, however far training carries it.
  result.serial_by_part = result.losses;
  result.part = "replica";
  EXPECT_TRUE(CompareLosses(result, serial).ok);
  EXPECT_EQ(CompareLosses(result, serial).text, "within 1.0e-03; bit-equal by replica");
  result.serial_by_part[0] += 1e-12;
  EXPECT_FALSE(CompareLosses(result, serial).ok);
  result.losses[2] = std::nan("");
  EXPECT_FALSE(CompareLosses(result, serial).ok);
}

}  // namespace
}  // namespace pipelab
