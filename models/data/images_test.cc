// Image batches: scale, layouts, shifts and flips; Fashion-MNIST's files, made and real.
// The real images, where they are in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/images.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/fashion_mnist.h"
#include "models/data/r_test_writer.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two images of 2x3 pixels in 2 channels: pixel = 100 * image + 10 * place + channel.
std::shared_ptr<LabelledImages> SmallImages() {
  auto images = std::make_shared<LabelledImages>();
  images->height = 2;
  images->width = 3;
  images->channels = 2;
  images->classes = 5;
  for (int n = 0; n < 2; ++n) {
    for (int i = 0; i < 12; ++i) images->pixels.push_back(100 * n + 10 * (i / 2) + i % 2);
  }
  images->labels = {4, 1};
  return images;
}

std::vector<float> Written(const ImagePlacement& placement, bool last) {
  std::vector<float> value(256), out(12);
  for (int p = 0; p < 256; ++p) value[p] = static_cast<float>(p);
  WriteImage(*SmallImages(), 1, placement, last, value, absl::MakeSpan(out));
  return out;
}

TEST(WriteImage, BothLayouts) {
  EXPECT_THAT(Written({}, true),
              ElementsAre(100, 101, 110, 111, 120, 121, 130, 131, 140, 141, 150, 151));
  EXPECT_THAT(Written({}, false),
              ElementsAre(100, 110, 120, 130, 140, 150, 101, 111, 121, 131, 141, 151));
}

TEST(WriteImage, ShiftsAndFlips) {
  EXPECT_THAT(Written({1, 0, false}, false),
              ElementsAre(0, 0, 0, 100, 110, 120, 0, 0, 0, 101, 111, 121));
  EXPECT_THAT(Written({0, -1, false}, false),
              ElementsAre(110, 120, 0, 140, 150, 0, 111, 121, 0, 141, 151, 0));
  EXPECT_THAT(Written({0, 0, true}, false),
              ElementsAre(120, 110, 100, 150, 140, 130, 121, 111, 101, 151, 141, 131));
  EXPECT_THAT(Written({0, 1, true}, false),
              ElementsAre(110, 100, 0, 140, 130, 0, 111, 101, 0, 141, 131, 0));
}

TEST(PixelScale, MeanZeroDeviationOne) {
  const ImageData data = SyntheticImages(200, 50, 1);
  const ImageBatchSource source(data.train, data.scale, {}, ExampleOrder(200));
  EXPECT_EQ(source.fields()[0], (DataField{"image", FieldType::kFloat, {28, 28, 1}}));
  std::vector<float> x(200 * 784);
  source.FillFloats(0, 0, 0, absl::MakeSpan(x));
  double sum = 0, squares = 0;
  for (const float v : x) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  EXPECT_NEAR(sum / x.size(), 0, 1e-5);
  EXPECT_NEAR(squares / x.size(), 1, 1e-5);
}

TEST(SyntheticImages, SteadyAndOfAllClasses) {
  const ImageData a = SyntheticImages(300, 20, 1), b = SyntheticImages(300, 20, 1);
  EXPECT_EQ(a.name, "synthetic");
  EXPECT_EQ(a.train->pixels, b.train->pixels);
  EXPECT_EQ(a.held_out->labels, b.held_out->labels);
  EXPECT_NE(a.train->pixels, SyntheticImages(300, 20, 2).train->pixels);
  std::array<int, 10> seen = {};
  for (const uint8_t label : a.train->labels) ++seen[label];
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 10);
}

TEST(NearestMeanAccuracy, ByHand) {
  LabelledImages train, asked;
  train.height = train.width = 1;
  train.classes = 3;  // the last has no image
  train.pixels = {0, 20, 100, 120};
  train.labels = {0, 0, 1, 1};
  asked = train;
  asked.pixels = {10, 61, 200, 59};  // means 10 and 110
  asked.labels = {0, 1, 0, 0};
  EXPECT_EQ(NearestMeanAccuracy(train, asked), 0.75);
}

TEST(SyntheticImages, CanBeLearned) {
  const ImageData data = SyntheticImages(1000, 200, 1);
  const double accuracy = NearestMeanAccuracy(*data.train, *data.held_out);
  EXPECT_GT(accuracy, 0.4);
  EXPECT_LT(accuracy, 0.95);  // moves are left for a better model
}

TEST(ImageBatchSource, AugmentationIsDrawnByStepAndSample) {
  const ImageData data = SyntheticImages(64, 10, 1);
  ImageOptions options;
  options.augmentation = {2, true};
  const auto source = [&](uint64_t seed) {
    return ImageBatchSource(data.train, data.scale, options, ExampleOrder(64, 64, seed, "data"));
  };
  std::vector<float> all(64 * 784), again(784), later(64 * 784);
  source(1).FillFloats(0, 0, 0, absl::MakeSpan(all));
  for (int64_t s : {0, 17, 63}) {
    source(1).FillFloats(0, 0, s, absl::MakeSpan(again));
    EXPECT_TRUE(std::equal(again.begin(), again.end(), all.begin() + s * 784));
  }
  // Every placement turns up, and each sample is one of an image's 50.
  const ExampleOrder order(64, 64, 1, "data");
  const std::vector<float> value = PixelValues(data.scale);
  std::array<int, 50> seen = {};
  for (int64_t step = 0; step < 8; ++step) {
    source(1).FillFloats(0, step, 0, absl::MakeSpan(later));
    for (int64_t s = 0; s < 64; ++s) {
      int found = -1;
      for (int p = 0; p < 50 && found < 0; ++p) {
        WriteImage(*data.train, order.ExampleAt(step, s),
                   {p / 2 / 5 - 2, p / 2 % 5 - 2, p % 2 == 1}, false, value, absl::MakeSpan(again));
        if (std::equal(again.begin(), again.end(), later.begin() + s * 784)) found = p;
      }
      ASSERT_GE(found, 0);
      ++seen[found];
    }
  }
  EXPECT_GE(std::count_if(seen.begin(), seen.end(), [](int n) { return n > 0; }), 48);
}

std::string Idx(const std::vector<int>& dimensions, const std::string& bytes) {
  std::string out("\0\0\x08", 3);
  out.push_back(static_cast<char>(dimensions.size()));
  for (const int d : dimensions) out += RWriter().Word(static_cast<uint32_t>(d)).bytes();
  return ZlibOf(out + bytes);
}

// A package's folder with 3 training and 2 test images of 2x2 pixels.
std::string FakeFashionPackage(const std::string& train_labels) {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "fashion-"));
  const std::string dir = JoinPath(root, "usr/share/datasets/fashion-mnist");
  EXPECT_THAT(MakeDirectories(dir), IsOk());
  const auto write = [&](const char* name, const std::string& bytes) {
    EXPECT_THAT(WriteFileAtomically(JoinPath(dir, name), bytes), IsOk());
  };
  write("train-images-idx3-ubyte.gz", Idx({3, 2, 2}, "abcdefghijkl"));
  write("train-labels-idx1-ubyte.gz", train_labels);
  write("t10k-images-idx3-ubyte.gz", Idx({2, 2, 2}, "abcdefgh"));
  write("t10k-labels-idx1-ubyte.gz", Idx({2}, std::string("\0\1", 2)));
  return root;
}

TEST(FashionMnist, LoadsBothParts) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ImageData data,
                               LoadFashionMnist(FakeFashionPackage(Idx({3}, "\1\2\x9"))));
  EXPECT_EQ(data.name, "fashion-mnist");
  EXPECT_THAT(data.train->labels, ElementsAre(1, 2, 9));
  EXPECT_EQ(data.train->image_bytes(), 4);
  EXPECT_EQ(data.held_out->size(), 2);
  EXPECT_EQ(data.held_out->pixels[7], 'h');
}

TEST(FashionMnist, DamageIsNamed) {
  const auto expect = [](const std::string& labels, const char* words) {
    EXPECT_THAT(
        LoadFashionMnist(FakeFashionPackage(labels)),
        StatusIs(absl::StatusCode::kDataLoss,
                 testing::AllOf(HasSubstr("train-labels-idx1-ubyte.gz: "), HasSubstr(words))));
  };
  expect(Idx({4}, "\1\2\3\4"), "4 labels in 1 dimensions; there are 3 images");
  expect(Idx({3}, "\1\2\xA"), "label 2 is 10; there are 10 classes");
  expect(Idx({3}, "\1\2"), "byte 8: 2 numbers follow");
  expect("hello", "byte 0: magic number");
  EXPECT_FALSE(LoadFashionMnist("/no/such").ok());
}

TEST(FashionMnist, RealImages) {
  const auto dir = FindDebianPackage(FashionMnistPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) {
    GTEST_SKIP() << dir.status().message() << "; see the top of this file";
  }
  ASSERT_THAT(dir, IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ImageData data, LoadFashionMnist(*dir));
  EXPECT_EQ(data.train->size(), 60000);
  EXPECT_EQ(data.held_out->size(), 10000);
  EXPECT_EQ(data.train->image_bytes(), 784);
  for (const auto& part : {data.train, data.held_out}) {
    std::array<int64_t, 10> count = {};
    for (const uint8_t label : part->labels) ++count[label];
    for (const int64_t c : count) EXPECT_EQ(c, part->size() / 10);
  }
  // The mean and deviation that others normalise with.
  EXPECT_NEAR(data.scale.mean, 0.2860, 5e-5);
  EXPECT_NEAR(data.scale.deviation, 0.3530, 5e-5);
}

}  // namespace
}  // namespace pipelab
