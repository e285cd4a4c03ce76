// Networks of convolutions in data-parallel copies: each device's memory and traffic as predicted,
// to the byte. A convolution's scratch does not shrink with the rows, so a copy holds more than its
// share of what one device alone would. And batch normalisation in them: over the rows of all
// copies they train as the serial loop does, and over their own as a serial loop that normalises
// the rows of each copy by themselves.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/random_batches.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/published.h"
#include "pipelines/runtime/batch_norm.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ModelGraph PublishedGraph(const std::string& name) {
  for (const PublishedModel& model : PublishedModels()) {
    if (model.name == name) return *model.build();
  }
  ADD_FAILURE() << name;
  return ModelGraph();
}

class CopiesTest : public testing::TestWithParam<const char*> {
 protected:
  // A micro-batch has `samples`, which the schedule's groups must divide.
  void ExpectAsPredicted(TrainingOptions options, int64_t samples) {
    options.config.micro_batch_size = samples / options.config.data;
    SCOPED_TRACE(Describe(options));
    const RandomBatches data(FieldsOf(graph_), samples * options.config.micro_batches, 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph_, data, options));
    EXPECT_EQ(LossesAsPredicted(training.get(), 2).size(), 2);
    ++checked_;
  }

  const ModelGraph graph_ = PublishedGraph(GetParam());
  int checked_ = 0;
};

TEST_P(CopiesTest, HoldAndSendWhatIsPredicted) {
  for (const auto& [scheme, devices] :
       {std::make_tuple("1f1b", 1), std::make_tuple("gpipe", 2), std::make_tuple("1f1b", 2),
        std::make_tuple("breadth_first", 2), std::make_tuple("zb_h1", 2),
        std::make_tuple("chimera", 2)}) {
    for (const int copies : {2, 3, 4}) {
      for (const bool recompute : {false, true}) {
        TrainingOptions options = SmallTraining(scheme, devices, 2);
        options.config.data = copies;
        options.config.recompute = RecomputeIf(recompute);
        if (!Serves(options.config)) continue;
        ExpectAsPredicted(options, copies);
        if (copies == 2) ExpectAsPredicted(options, 3 * copies);
      }
    }
  }
  EXPECT_GE(checked_, 40);
}

// Groups of two, one and three devices: a device has its rows of what others compute whole.
TEST_P(CopiesTest, OfSomeStagesOnly) {
  SchemeParams sizes{6, 2};
  sizes.devices_of_stage = {{0, 1}, {2}, {3, 4, 5}};
  sizes.stages = StageGraph::Chain(3);
  for (const bool recompute : {false, true}) {
    TrainingOptions options = SmallTraining("graph", 6, 2);
    sizes.recompute = recompute;
    PIPELAB_ASSERT_OK_AND_ASSIGN(options.schedule, MakeSchedule("graph", sizes));
    ExpectAsPredicted(options, 6);
  }
}

class BatchNormTest : public CopiesTest {
 protected:
  // SGD: Adam makes whole steps of gradients that are 0 but for rounding, as those of a bias in
  // front of a normalisation are.
  static TrainingOptions Options(const char* scheme, int devices, int copies,
                                 BatchNormCopies batch_norm) {
    TrainingOptions options = SmallTraining(scheme, devices, 2);
    options.config.data = copies;
    options.config.batch_norm = batch_norm;
    SgdOptions sgd;
    sgd.learning_rate = 0.02f;
    options.optimizer = OptimizerOptions::Sgd(sgd);
    return options;
  }

  // Trains copies and the serial loop with the same statistics; the largest difference of a running
  // statistic goes to `statistics`.
  void ExpectAsSerial(TrainingOptions options, int64_t samples, double* statistics) {
    options.config.micro_batch_size = samples / options.config.data;
    const int micro_batches = options.config.micro_batches;
    const RandomBatches data(FieldsOf(graph_), samples * micro_batches, 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph_, data, options));
    SerialOptions serial = SmallSerial(data, micro_batches);
    serial.micro_batch_size = samples;
    serial.optimizer = options.optimizer;
    serial.norm_parts = NormParts(graph_, training->partition(), training->program().schedule,
                                  options.config.batch_norm);
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto trainer,
                                 SerialTrainer::Create(graph_, backend.get(), serial));
    std::vector<double> losses;
    for (int step = 0; step < kSteps; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(losses.emplace_back(), trainer->Step());
    }
    SchemeResult result;
    result.config.micro_batches = micro_batches * static_cast<int>(samples);
    result.losses = LossesAsPredicted(training.get(), kSteps);
    const Equality equality = CompareLosses(result, losses);
    EXPECT_TRUE(equality.ok) << Describe(options) << ": " << equality.text;
    *statistics = 0;
    for (const LayerSpec& layer : graph_.layers) {
      for (const ParameterSpec& p : layer.statistics) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const auto got, training->ParameterValue(p.name));
        PIPELAB_ASSERT_OK_AND_ASSIGN(const auto want, trainer->ParameterValue(p.name));
        for (size_t i = 0; i < got.size(); ++i) {
          *statistics = std::max<double>(*statistics, std::abs(got[i] - want[i]));
        }
      }
    }
  }

  static constexpr int kSteps = 2;
};

TEST_P(BatchNormTest, TrainsAsTheSerialLoopWithTheSameStatistics) {
  for (const BatchNormCopies batch_norm : {BatchNormCopies::kSynchronised, BatchNormCopies::kOwn}) {
    for (const auto& [scheme, devices, copies] :
         {std::make_tuple("1f1b", 1, 2), std::make_tuple("1f1b", 2, 2),
          std::make_tuple("gpipe", 2, 3), std::make_tuple("zb_h1", 2, 4)}) {
      for (const bool recompute : {false, true}) {
        TrainingOptions options = Options(scheme, devices, copies, batch_norm);
        options.config.recompute = RecomputeIf(recompute);
        if (!Serves(options.config)) continue;
        SCOPED_TRACE(batch_norm == BatchNormCopies::kOwn ? "own" : "synchronised");
        double statistics = 1;
        ExpectAsSerial(options, 2 * copies, &statistics);
        EXPECT_LT(statistics, 1e-5) << Describe(options);
      }
    }
  }
}

// Where all stages have as many copies, each on its own rows is a serial loop over micro-batches of
// these rows that sums each copy's first, to the bit.
TEST_P(BatchNormTest, OwnStatisticsHaveTheBitsOfTheLoopByCopy) {
  for (const auto& [scheme, copies] : {std::make_tuple("1f1b", 2), std::make_tuple("gpipe", 3)}) {
    const RandomBatches data(FieldsOf(graph_), 4 * copies, 1);
    TrainingOptions options = Options(scheme, 2, copies, BatchNormCopies::kOwn);
    options.config.micro_batch_size = 2;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph_, data, options));
    SerialOptions serial = SmallSerial(data, 2);
    serial.micro_batch_size = 2 * copies;
    serial.optimizer = options.optimizer;
    ASSERT_TRUE(SumByCopy(training->program().schedule, &serial));
    serial.stage_of_layer = training->partition().stage_of_layer;
    SchemeResult result;
    result.losses = LossesAsPredicted(training.get(), kSteps);
    result.must_be_bit_equal = true;
    const Equality equality = CompareLosses(result, SerialLosses(graph_, serial, kSteps));
    EXPECT_TRUE(equality.ok) << Describe(options) << ": " << equality.text;
  }
}

// The two are different computations, and every copy has what the first one has only where they
// normalise together.
TEST_P(BatchNormTest, NormalisingTogetherIsNotNormalisingAlone) {
  const RandomBatches data(FieldsOf(graph_), 8, 1);
  std::vector<double> losses;
  for (const BatchNormCopies batch_norm : {BatchNormCopies::kSynchronised, BatchNormCopies::kOwn}) {
    TrainingOptions options = Options("1f1b", 1, 2, batch_norm);
    options.config.micro_batch_size = 2;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph_, data, options));
    losses.push_back(LossesAsPredicted(training.get(), 2).back());
  }
  EXPECT_GT(std::abs(losses[0] - losses[1]), 1e-5);
}

// Passes of copies that run different lists would wait for one another for ever.
TEST_P(BatchNormTest, RefusesCopiesThatRunDifferentLists) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakeSchedule("gpipe", {2, 2}));
  std::vector<Action>& first = schedule.order[0];
  first.insert(first.begin() + 2, schedule.order[1].begin(), schedule.order[1].end());
  std::swap(schedule.order[0], schedule.order[1]);
  schedule.order[0] = {schedule.order[1][0], schedule.order[1][1], *(schedule.order[1].end() - 2),
                       schedule.order[1].back()};
  schedule.placement.groups = {{{0, 1}, {1}}};
  TrainingOptions options = Options("gpipe", 2, 1, BatchNormCopies::kSynchronised);
  options.schedule = schedule;
  options.config.micro_batch_size = 2;
  const RandomBatches data(FieldsOf(graph_), 4, 1);
  EXPECT_THAT(PipelineTraining::Create(graph_, data, options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("--batch_norm=synchronised: devices 0 and 1")));
  options.config.batch_norm = BatchNormCopies::kOwn;
  EXPECT_THAT(PipelineTraining::Create(graph_, data, options), IsOk());
}

std::string NetworkName(const testing::TestParamInfo<const char*>& info) {
  const std::string name = info.param;
  return name.substr(0, name.find('-'));
}

INSTANTIATE_TEST_SUITE_P(Networks, CopiesTest,
                         testing::Values("vgg-small", "unet-small", "amoebanet-small",
                                         "resnet-small"),
                         NetworkName);

INSTANTIATE_TEST_SUITE_P(Networks, BatchNormTest,
                         testing::Values("unet-small", "amoebanet-small", "resnet-small"),
                         NetworkName);

}  // namespace
}  // namespace pipelab
