// Networks of images trained for real in pipelines: AmoebaNet-D, whose cells take the two cells
// before them, U-Net, whose skips cross many stages, and a ResNet. Like the serial loop, to the
// bit, running statistics of batch normalisation included; memory as predicted, to the byte.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/training/comparison.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/serial_trainer.h"
#include "models/layers/test_images.h"
#include "models/layers/test_layers.h"
#include "pipelines/cost/chain_partition.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kImageSteps = 3;

// What training leaves: losses by step, and every parameter and statistic at the end, by name.
struct TrainedImages {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> values;
};

class ImageModel : public testing::TestWithParam<GroupedModel (*)()> {
 protected:
  template <typename T>
  void TakeValues(const T& training, TrainedImages* trained) {
    for (const LayerSpec& layer : model_.graph.layers) {
      for (const auto* specs : {&layer.parameters, &layer.statistics}) {
        for (const ParameterSpec& p : *specs) {
          PIPELAB_ASSERT_OK_AND_ASSIGN(trained->values[p.name], training.ParameterValue(p.name));
        }
      }
    }
  }

  const TrainedImages& Serial(const std::vector<int>& stage_of_layer, int micro_batches) {
    TrainedImages& trained = serial_[{stage_of_layer, micro_batches}];
    if (!trained.losses.empty()) return trained;
    SerialOptions options = SmallSerial(data_, micro_batches);
    options.stage_of_layer = stage_of_layer;
    Arena arena;
    const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
    auto trainer = SerialTrainer::Create(model_.graph, backend.get(), options);
    EXPECT_THAT(trainer, IsOk());
    for (int step = 0; trainer.ok() && step < kImageSteps; ++step) {
      trained.losses.push_back(*(*trainer)->Step());
    }
    if (trainer.ok()) TakeValues(**trainer, &trained);
    return trained;
  }

  // Trains, compares with the serial loop, and memory with its prediction.
  void Check(const TrainingOptions& options) {
    SCOPED_TRACE(testing::Message() << model_.graph.name << ", " << Describe(options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                 PipelineTraining::Create(model_.graph, data_, options));
    SchemeResult result;
    result.config = options.config;
    result.must_be_bit_equal = KeepsMicroBatchOrder(training->program().schedule);
    result.losses = LossesAsPredicted(training.get(), kImageSteps);
    const TrainedImages& serial =
        Serial(training->partition().stage_of_layer, options.config.micro_batches);
    const Equality equality = CompareLosses(result, serial.losses);
    EXPECT_TRUE(equality.ok) << equality.text;
    ++checked_;
    if (!result.must_be_bit_equal) return;
    ++bit_equal_;
    TrainedImages trained;
    TakeValues(*training, &trained);
    EXPECT_TRUE(trained.values == serial.values) << "parameters or statistics differ";
  }

  // Schemes that cannot serve the sizes are left out.
  void CheckWithAndWithoutRecompute(TrainingOptions options) {
    for (bool recompute : {false, true}) {
      options.config.recompute = RecomputeIf(recompute);
      if (Serves(options.config)) Check(options);
    }
  }

  const GroupedModel model_ = GetParam()();
  const RandomData data_{TestFieldsOf(model_.graph)};
  std::map<std::pair<std::vector<int>, int>, TrainedImages> serial_;
  int checked_ = 0, bit_equal_ = 0;
};

// Ranges of layers balanced by flops: cells are cut anywhere, so up to six outputs cross at once.
TEST_P(ImageModel, EverySchemeTrainsAsSerial) {
  for (const Scheme& scheme : Catalog()) {
    if (!TrainsAsSerial(scheme) || (scheme.options & kTokenSlices) != 0) continue;
    CheckWithAndWithoutRecompute(SmallTraining(std::string(scheme.name), 4, 8));
  }
  EXPECT_GT(checked_, 15);
  EXPECT_GT(bit_equal_, 10);
}

// Stages of whole groups, as GPipe cuts AmoebaNet between cells.
TEST_P(ImageModel, StagesOfWholeGroupsTrainAsSerial) {
  const int groups = model_.num_groups();
  for (int stages = 2; stages <= groups; ++stages) {
    std::vector<int> groups_of_stage(stages, groups / stages);
    for (int s = 0; s < groups % stages; ++s) ++groups_of_stage[s];
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<int> stage_of_layer,
                                 StagesOfGroups(model_, groups_of_stage));
    for (const char* scheme : {"gpipe", "1f1b", "breadth_first", "graph"}) {
      const int virtual_stages = scheme == std::string("breadth_first") ? 2 : 1;
      if (stages % virtual_stages != 0) continue;
      TrainingOptions options = SmallTraining(scheme, stages / virtual_stages, 3);
      options.config.layout = StagesText(stage_of_layer);
      if (virtual_stages > 1) options.config.virtual_stages = virtual_stages;
      CheckWithAndWithoutRecompute(options);
    }
  }
  EXPECT_GT(checked_, 15);
  EXPECT_EQ(bit_equal_, checked_);
}

// Copies of a stage share parameters, and not running statistics, which each has whole.
TEST_P(ImageModel, StateOfShardedCopiesIsAsPredicted) {
  for (Sharding sharding :
       {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
    SCOPED_TRACE(ShardingName(sharding));
    TrainingOptions options = SmallTraining("1f1b", 2, 4);
    options.config.data = options.config.micro_batch_size = 2;
    options.config.sharding = sharding;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                 PipelineTraining::Create(model_.graph, data_, options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                 Simulate(training->program(), training->costs()));
    for (int step = 0; step < kImageSteps; ++step) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, training->Step());
      for (size_t d = 0; d < predicted.devices.size(); ++d) {
        EXPECT_EQ(done.trace.devices[d].peak_state, predicted.devices[d].peak_state) << d;
      }
    }
  }
}

// The loss falls when the same data comes again and again.
TEST_P(ImageModel, Learns) {
  class OneBatch : public RandomData {
   public:
    using RandomData::RandomData;
    void FillFloats(int field, int64_t, int64_t first, absl::Span<float> out) const override {
      RandomData::FillFloats(field, 0, first, out);
    }
    void FillIds(int field, int64_t, int64_t first, absl::Span<int32_t> out) const override {
      RandomData::FillIds(field, 0, first, out);
    }
  };
  const OneBatch data(TestFieldsOf(model_.graph));
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      auto training, PipelineTraining::Create(model_.graph, data, SmallTraining("1f1b", 3, 4)));
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep done, training->Step());
    if (step == 0) first = done.loss;
    last = done.loss;
  }
  // Random classes of single pixels are hard to learn by heart.
  EXPECT_LT(last, (model_.graph.name == "unet" ? 0.95 : 0.7) * first);
}

std::string ImageModelName(const testing::TestParamInfo<GroupedModel (*)()>& info) {
  const char* const names[] = {"AmoebaNet", "UNet", "ResNet"};
  return names[info.index];
}

INSTANTIATE_TEST_SUITE_P(Networks, ImageModel,
                         testing::Values(&SmallAmoebaNet, &SmallUNet, &SmallResNet),
                         ImageModelName);

}  // namespace
}  // namespace pipelab
