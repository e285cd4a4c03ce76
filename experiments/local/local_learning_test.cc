// The figures of //experiments:local_learning hold together.
#include <memory>
#include <string>
#include <vector>

#include "experiments/local/local_points.h"
#include "experiments/local/methods.h"
#include "experiments/local/paces.h"
#include "experiments/local/real_pipelines.h"
#include "experiments/report/claim.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/images.h"
#include "models/zoo/vit.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

VitConfig VitOf(int64_t side, int64_t channels) {
  VitConfig c;
  c.layers = 2;
  c.hidden = 16;
  c.heads = 2;
  c.patch = side / 4;
  c.side = side;
  c.channels = channels;
  return c;
}

TEST(LocalPoints, APipelineIsNoFasterThanItsDevices) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  LocalSetting setting;
  setting.cluster = cluster;
  setting.batch = 128;
  for (const LocalNetwork network : {LocalNetwork::kVit, LocalNetwork::kResNet110}) {
    setting.network = network;
    double even = 0;
    for (bool equal_blocks : {true, false}) {
      SCOPED_TRACE(testing::Message() << LocalNetworkName(network) << equal_blocks);
      setting.equal_blocks = equal_blocks;
      PIPELAB_ASSERT_OK_AND_ASSIGN(const LocalPoint p, LocalPointOf(setting));
      EXPECT_GT(p.serial, p.plain) << "heads take time";
      EXPECT_LE(p.speedup(), kLocalDevices);
      EXPECT_GE(p.speedup(), even) << "cut by time is no slower";
      even = p.speedup();
    }
    EXPECT_GT(even, 2);
  }
}

TEST(Methods, LatenessIsThePapers) {
  SchemeParams sizes;
  sizes.devices = 4;
  sizes.micro_batches = 32;
  sizes.update_interval = 8;
  const auto late = [&](const char* scheme) {
    SchemeParams own = sizes;
    if (std::string(scheme) != "pipedream_2bw") own.update_interval = 0;
    return Lateness(MakeSchedule(scheme, own).value());
  };
  EXPECT_EQ(late("1f1b"), 0);
  EXPECT_EQ(late("local"), 0);
  EXPECT_EQ(late("over_time"), 6) << "2 a boundary";
  EXPECT_EQ(late("pipedream"), 3) << "weight stashing: P - 1 at the first stage";
  EXPECT_EQ(late("pipedream_2bw"), 8) << "one update";
}

TEST(Paces, ASlowDeviceHoldsUpLocalAlone) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<Pace> paces, PricedPaces(cluster));
  for (const Pace& pace : paces) {
    const double times = pace.step / paces[0].step;
    if (pace.window > 0) {
      EXPECT_LE(times, 1.05) << pace.slow;
      EXPECT_EQ(pace.stale > 0, pace.window > 1) << "the newest again is not old";
      EXPECT_LT(pace.stale, 2 * pace.window);
    } else if (pace.slow >= 0) {
      EXPECT_GE(times, 1.5) << pace.slow;
      EXPECT_GT(pace.idle, 0.3);
    }
  }
  EXPECT_EQ(PaceClaims(paces).at(0).state, ClaimState::kMet);
  EXPECT_THAT(PaceTable(paces, 64).status(), IsOk());
  EXPECT_THAT(
      TrainPaces(SyntheticImages(/*train=*/64, /*held_out=*/8, /*seed=*/1), 65, &paces).message(),
      testing::HasSubstr("--train_batches=65: must be a multiple of 64"));
}

// The middle of each picture: a fifth of the work.
ImageData Middle(const ImageData& images) {
  constexpr int64_t kSide = 12;
  const auto middle = [](const LabelledImages& all) {
    auto small = std::make_shared<LabelledImages>();
    small->height = small->width = kSide;
    small->channels = all.channels;
    small->classes = all.classes;
    small->labels = all.labels;
    const int64_t top = (all.height - kSide) / 2, left = (all.width - kSide) / 2;
    for (int64_t i = 0; i < all.size(); ++i) {
      for (int64_t row = top; row < top + kSide; ++row) {
        const int64_t pixel = (row * all.width + left) * all.channels;
        const auto from = all.pixels.begin() + i * all.image_bytes() + pixel;
        small->pixels.insert(small->pixels.end(), from, from + kSide * all.channels);
      }
    }
    return small;
  };
  return {images.name, middle(*images.train), middle(*images.held_out), images.scale};
}

TEST(Methods, TrainAndSayWhatTheyCost) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx1-v100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<Method> methods, PricedMethods(cluster));
  const ImageData images = Middle(SyntheticImages(/*train=*/400, /*held_out=*/40, /*seed=*/1));
  EXPECT_THAT(TrainMethods(images, 65, &methods).message(),
              testing::HasSubstr("--train_batches=65: must be a multiple of 64"));
  ASSERT_THAT(TrainMethods(images, 64, &methods), IsOk());
  EXPECT_THAT(MethodTable(methods, 64 * kMethodBatch).status(), IsOk());
  Bytes sent;
  for (const Method& m : methods) {
    EXPECT_TRUE(m.accuracy.has_value()) << m.scheme;
    EXPECT_EQ(m.exits.size(), m.scheme == "local" ? 3u : 0u);
    if (m.scheme == "1f1b") sent = m.sent;
    if (m.scheme == "local") {
      EXPECT_LT(m.sent, sent) << "no gradients";
    }
  }
}

// "local, no flush" learns what `local` does: its steps are the same, in one program.
TEST(Methods, NoFlushKeepsEveryBit) {
  constexpr int kDevices = 2, kUpdate = 4, kUpdates = 3;
  constexpr int64_t kSamples = 2;
  const ImageData images = SyntheticImages(/*train=*/100, /*held_out=*/10, /*seed=*/1);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const GroupedModel model,
                               BuildVit(VitOf(images.train->height, images.train->channels)));
  std::unique_ptr<PipelineTraining> trained[2];
  for (const bool flushed : {true, false}) {
    TrainingOptions options;
    options.config.scheme = "local";
    options.config.pipeline = kDevices;
    options.config.micro_batches = flushed ? kUpdate : kUpdate * kUpdates;
    options.config.micro_batch_size = kSamples;
    if (!flushed) options.config.update_interval = kUpdate;
    const ImageBatchSource data(
        images.train, images.scale, ImageOptions(),
        ExampleOrder(images.train->size(), kSamples * options.config.micro_batches, 1, "images"));
    PIPELAB_ASSERT_OK_AND_ASSIGN(trained[flushed],
                                 PipelineTraining::Create(model.graph, data, options));
    for (int step = 0; step < (flushed ? kUpdates : 1); ++step) {
      ASSERT_THAT(trained[flushed]->Step(), IsOk());
    }
  }
  int values = 0;
  for (const LayerSpec& layer : trained[0]->graph().layers) {
    for (const ParameterSpec& p : layer.parameters) {
      EXPECT_EQ(trained[0]->ParameterValue(p.name).value(),
                trained[1]->ParameterValue(p.name).value())
          << p.name;
      ++values;
    }
  }
  EXPECT_GT(values, 10);
}

TEST(RealPipelines, LocalLearningKeepsEveryBit) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<RealPipeline> real,
                               RunRealPipelines(/*runs=*/0, /*hidden=*/16));
  ASSERT_EQ(real.size(), 2u);
  EXPECT_TRUE(real[0].same_losses);
  EXPECT_FALSE(real[1].same_losses) << "late gradients are others";
}

}  // namespace
}  // namespace pipelab
