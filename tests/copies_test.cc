// Networks of convolutions in data-parallel copies: each device's memory and traffic as predicted,
// to the byte. A convolution's scratch does not shrink with the rows, so a copy holds more than its
// share of what one device alone would.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "pipelines/runtime/training.h"
#include "gtest/gtest.h"
#include "models/data/random_batches.h"
#include "models/zoo/published.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ModelGraph Published(const std::string& name) {
  for (const PublishedModel& model : PublishedModels()) {
    if (model.name == name) return *model.build();
  }
  ADD_FAILURE() << name;
  return ModelGraph();
}

class CopiesTest : public testing::TestWithParam<const char*> {
 protected:
  // Of `samples`, which the schedule's groups must divide.
  void ExpectAsPredicted(TrainingOptions options, int64_t samples) {
    options.micro_batch_samples = samples;
    SCOPED_TRACE(testing::Message() << Describe(options) << ", copies "
                                    << options.sizes.data_parallel << " of " << samples);
    const RandomBatches data(FieldsOf(graph_), samples * options.sizes.micro_batches, 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, PipelineTraining::Create(graph_, data, options));
    EXPECT_EQ(LossesAsPredicted(training.get(), 2).size(), 2);
    ++checked_;
  }

  const ModelGraph graph_ = Published(GetParam());
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
        options.sizes.data_parallel = copies;
        options.sizes.recompute = recompute;
        if (!MakeSchedule(options.scheme, options.sizes).ok()) continue;
        ExpectAsPredicted(options, copies);
        if (copies == 2) ExpectAsPredicted(options, 3 * copies);
      }
    }
  }
  EXPECT_GE(checked_, 40);
}

// Groups of two, one and three devices: a device has its rows of what others compute whole.
TEST_P(CopiesTest, OfSomeStagesOnly) {
  TrainingOptions options = SmallTraining("graph", 6, 2);
  options.sizes.devices_of_stage = {{0, 1}, {2}, {3, 4, 5}};
  options.sizes.stages = StageGraph::Chain(3);
  for (const bool recompute : {false, true}) {
    options.sizes.recompute = recompute;
    ExpectAsPredicted(options, 6);
  }
}

std::string NameOf(const testing::TestParamInfo<const char*>& info) {
  const std::string name = info.param;
  return name.substr(0, name.find('-'));
}

INSTANTIATE_TEST_SUITE_P(Networks, CopiesTest,
                         testing::Values("vgg-small", "unet-small", "amoebanet-small",
                                         "resnet-small"),
                         NameOf);

}  // namespace
}  // namespace pipelab
