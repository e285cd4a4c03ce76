// What the image kernels and embedding bags promise beyond values, on every backend: workspace,
// ties, NaNs, paddings, running statistics, empty bags, refused shapes.
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cases/backend_fixture.h"
#include "kernels/cases/image_shapes.h"

namespace pipelab {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_P(BackendTest, ConvolutionsChargeExactlyTheirWorkspace) {
  for (CaseSize size : {CaseSize::kSmall, CaseSize::kMedium}) {
    for (const ConvolutionShape& s : ConvolutionShapes(size)) {
      SCOPED_TRACE(ToString(s));
      const Tensor x = Random({s.samples, s.height, s.width, s.in_channels}, "x");
      const Tensor w = Random(
          {s.kernel_height * s.kernel_width, s.depthwise ? 1 : s.in_channels, s.out_channels}, "w");
      const Tensor y =
          backend_->Allocate({s.samples, s.out_height(), s.out_width(), s.out_channels});
      const Bytes want(4 * ConvolutionWorkspaceFloats(s));
      const Tensor dx = Clone(x), dw = Clone(w);
      arena_.ResetPeaks();
      const Bytes before = arena_.current_transient();
      backend_->convolution().Forward(s, x, w, Tensor(), y);
      EXPECT_EQ(arena_.peak_transient() - before, want);
      arena_.ResetPeaks();
      backend_->convolution().InputGradient(s, y, w, dx);
      EXPECT_EQ(arena_.peak_transient() - before, want);
      arena_.ResetPeaks();
      backend_->convolution().WeightGradient(s, x, y, dw, Tensor());
      EXPECT_EQ(arena_.peak_transient() - before, want);
      EXPECT_EQ(arena_.peak(MemoryKind::kWorkspace), want);
      EXPECT_EQ(arena_.current(MemoryKind::kWorkspace), Bytes(0));
    }
  }
}

PoolingShape Window(int64_t height, int64_t width, int64_t kernel, int64_t pad) {
  PoolingShape s;
  s.samples = s.channels = 1;
  s.height = height;
  s.width = width;
  s.kernel_height = s.kernel_width = kernel;
  s.pad_height = s.pad_width = pad;
  return s;
}

TEST_P(BackendTest, TheGradientOfEqualMaximaGoesToTheFirst) {
  // What a ReLU leaves: zeros everywhere but at the end.
  const PoolingShape s = Window(2, 3, 2, 0);
  const Tensor x = Float({1, 2, 3, 1}, {0, 0, 0, 0, 0, 5}), y = backend_->Allocate({1, 1, 2, 1});
  const Tensor dx = backend_->Allocate(x.shape());
  backend_->pooling().Max(s, x, y);
  EXPECT_EQ(y.f32()[0], 0);
  EXPECT_EQ(y.f32()[1], 5);
  backend_->pooling().MaxGradient(s, Float({1, 1, 2, 1}, {3, 4}), x, dx);
  EXPECT_TRUE(SameBits(dx, Float({1, 2, 3, 1}, {3, 0, 0, 0, 0, 4})));
}

TEST_P(BackendTest, MaximaSeeNaNsAndNoPaddings) {
  const PoolingShape s = Window(2, 2, 3, 1);
  const Tensor x = Float({1, 2, 2, 1}, {-4, -3, -2, -5}), y = backend_->Allocate({1, 2, 2, 1});
  backend_->pooling().Max(s, x, y);
  for (float v : y.f32()) EXPECT_EQ(v, -2) << "a padding is no maximum";
  for (int at = 0; at < 4; ++at) {
    const Tensor bad = Clone(x), dx = backend_->Allocate(x.shape());
    bad.f32()[at] = kNan;
    backend_->pooling().Max(s, bad, y);
    for (float v : y.f32()) EXPECT_TRUE(std::isnan(v)) << at;
    backend_->pooling().MaxGradient(s, Filled(y.shape(), 1), bad, dx);
    EXPECT_EQ(dx.f32()[at], 4) << "all four windows";
  }
}

TEST_P(BackendTest, AveragesCountThePaddingWhenAsked) {
  PoolingShape s = Window(2, 2, 3, 1);
  const Tensor x = Float({1, 2, 2, 1}, {1, 2, 3, 6}), y = backend_->Allocate({1, 2, 2, 1});
  backend_->pooling().Average(s, x, y);
  for (float v : y.f32()) EXPECT_FLOAT_EQ(v, 3);  // 12 / 4
  s.count_padding = true;
  backend_->pooling().Average(s, x, y);
  for (float v : y.f32()) EXPECT_FLOAT_EQ(v, 12.0f / 9);
}

TEST_P(BackendTest, BatchNormKeepsItsDigitsBesideALargeMean) {
  const Tensor x = Random({500, 3}, "x"), shifted = Clone(x);
  for (float& v : shifted.f32()) v += 4096;
  const Tensor one = Filled({3}, 1), zero = Filled({3}, 0), y = backend_->Allocate(x.shape());
  const Tensor mean = backend_->Allocate({3}), variance = backend_->Allocate({3});
  const Tensor variance2 = backend_->Allocate({3});
  backend_->batch_norm().Forward(x, one, zero, y, mean, variance);
  backend_->batch_norm().Forward(shifted, one, zero, y, mean, variance2);
  // The input itself is rounded to 2^-12 there; E[x^2] - mean^2 would err by more than 1.
  for (int j = 0; j < 3; ++j) EXPECT_NEAR(variance2.f32()[j], variance.f32()[j], 1e-3);
}

TEST_P(BackendTest, RunningStatisticsAreThoseOfTheMiniBatch) {
  constexpr int64_t kRows = 24, kColumns = 5;
  const Tensor x = Random({kRows, kColumns}, "x"), one = Filled({kColumns}, 1);
  const auto run = [&](int64_t micro_batches, bool backwards) {
    const int64_t rows = kRows / micro_batches;
    const Tensor slots = backend_->Allocate({micro_batches, 2, kColumns});
    const Tensor y = backend_->Allocate({rows, kColumns});
    for (int64_t k = 0; k < micro_batches; ++k) {
      const int64_t b = backwards ? micro_batches - 1 - k : k;
      const Tensor slot = slots.Rows(b, b + 1).Reshape({2, kColumns});
      backend_->batch_norm().Forward(x.Rows(b * rows, (b + 1) * rows), one, one, y, slot.Rows(0, 1),
                                     slot.Rows(1, 2));
    }
    const Tensor running = Filled({2, kColumns}, 1);
    backend_->batch_norm().UpdateRunning(slots.Reshape({micro_batches, 2 * kColumns}), {}, 0.25f,
                                         running.Rows(0, 1), running.Rows(1, 2));
    return running;
  };
  const Tensor whole = run(1, false);
  for (int64_t micro_batches : {2, 3, 8, 24}) {
    const Tensor parts = run(micro_batches, false);
    for (int64_t i = 0; i < parts.size(); ++i) {
      EXPECT_NEAR(parts.f32()[i], whole.f32()[i], 1e-6) << micro_batches << " micro-batches";
    }
    EXPECT_TRUE(SameBits(parts, run(micro_batches, true))) << "the order of computing shows";
  }
  // Micro-batches of 4 and 20 rows.
  const Tensor slots = backend_->Allocate({2, 2, kColumns}), uneven = Filled({2, kColumns}, 1);
  for (int64_t b : {0, 1}) {
    const Tensor part = x.Rows(4 * b, b == 0 ? 4 : kRows), y = backend_->Allocate(part.shape());
    const Tensor slot = slots.Rows(b, b + 1).Reshape({2, kColumns});
    backend_->batch_norm().Forward(part, one, one, y, slot.Rows(0, 1), slot.Rows(1, 2));
  }
  backend_->batch_norm().UpdateRunning(slots.Reshape({2, 2 * kColumns}), {4, 20}, 0.25f,
                                       uneven.Rows(0, 1), uneven.Rows(1, 2));
  for (int64_t i = 0; i < uneven.size(); ++i) EXPECT_NEAR(uneven.f32()[i], whole.f32()[i], 1e-6);
  // By hand: the first column's mean.
  double sum = 0;
  for (int64_t i = 0; i < kRows; ++i) sum += x.f32()[i * kColumns];
  EXPECT_NEAR(whole.f32()[0], 0.75 + 0.25 * sum / kRows, 1e-6);
}

TEST_P(BackendTest, InferenceWithTheBatchsStatisticsIsTraining) {
  const Tensor x = Random({50, 20}, "x"), gamma = Random({20}, "g"), beta = Random({20}, "b");
  const Tensor mean = backend_->Allocate({20}), variance = backend_->Allocate({20});
  const Tensor y = backend_->Allocate(x.shape()), z = backend_->Allocate(x.shape());
  backend_->batch_norm().Forward(x, gamma, beta, y, mean, variance);
  backend_->batch_norm().Inference(x, gamma, beta, mean, variance, z);
  for (int64_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y.f32()[i], z.f32()[i], 1e-5);
  const Tensor bad = Clone(x);
  bad.f32()[7 * 20 + 3] = kNan;
  backend_->batch_norm().Forward(bad, gamma, beta, y, mean, variance);
  for (int64_t i = 0; i < 50; ++i) EXPECT_TRUE(std::isnan(y.f32()[i * 20 + 3])) << i;
  EXPECT_FALSE(std::isnan(y.f32()[4]));
}

TEST_P(BackendTest, ReluKeepsNaNsAndMayBeInPlace) {
  const Tensor x = Float({4}, {-1, 0, 2, kNan}), dy = Float({4}, {5, 6, 7, 8});
  backend_->Relu(x, x);
  EXPECT_EQ(x.f32()[0], 0);
  EXPECT_EQ(x.f32()[2], 2);
  EXPECT_TRUE(std::isnan(x.f32()[3]));
  backend_->ReluGradient(dy, x, dy);
  EXPECT_TRUE(SameBits(dy, Float({4}, {0, 0, 7, 8})));
}

TEST_P(BackendTest, ConcatenationAndSplitAreEachOthersInverse) {
  const Tensor a = Random({3, 5}, "a"), b = Random({3, 2}, "b");
  const Tensor both = backend_->Allocate({3, 7});
  backend_->CopyColumns(a, 0, both, 0, 5);
  backend_->CopyColumns(b, 0, both, 5, 2);
  EXPECT_EQ(both.f32()[7 + 5], b.f32()[2]);
  const Tensor a2 = backend_->Allocate({3, 5}), b2 = backend_->Allocate({3, 2});
  backend_->CopyColumns(both, 0, a2, 0, 5);
  backend_->CopyColumns(both, 5, b2, 0, 2);
  EXPECT_TRUE(SameBits(a, a2));
  EXPECT_TRUE(SameBits(b, b2));
}

TEST_P(BackendTest, BagsMayBeShortOrEmpty) {
  const Tensor table = Float({3, 2}, {1, 2, 10, 20, 100, 200});
  const Tensor ids = Int({2, 0, kNoId, 1, kNoId, kNoId, kNoId, kNoId, kNoId}).Reshape({3, 3});
  const Tensor y = backend_->Allocate({3, 2});
  backend_->embedding().Bag(ids, table, BagMode::kSum, y);
  EXPECT_TRUE(SameBits(y, Float({3, 2}, {101, 202, 10, 20, 0, 0})));
  backend_->embedding().Bag(ids, table, BagMode::kMean, y);
  EXPECT_TRUE(SameBits(y, Float({3, 2}, {50.5, 101, 10, 20, 0, 0})));
  const Tensor dtable = Filled({3, 2}, 1);
  backend_->embedding().BagWeightGradient(ids, Float({3, 2}, {2, 4, 6, 8, 7, 7}), BagMode::kMean,
                                          dtable);
  EXPECT_TRUE(SameBits(dtable, Float({3, 2}, {2, 3, 7, 9, 2, 3})));
}

TEST_P(BackendTest, RefusesImagesThatDoNotFit) {
  ConvolutionShape s;
  s.samples = 1;
  s.height = s.width = 4;
  s.in_channels = 2;
  s.out_channels = 3;
  s.kernel_height = s.kernel_width = 3;
  const Tensor x = Random({1, 4, 4, 2}, "x"), w = Random({3, 3, 2, 3}, "w");
  const Tensor y = Random({1, 2, 2, 3}, "y");
  ConvolutionKernels& k = backend_->convolution();
  EXPECT_DEATH(k.Forward(s, y, w, Tensor(), y), "Convolution: x is \\[1, 2, 2, 3\\] where");
  EXPECT_DEATH(k.Forward(s, x, x, Tensor(), y), "Convolution: w is");
  EXPECT_DEATH(k.InputGradient(s, x, w, x), "ConvolutionInputGradient: y is");
  EXPECT_DEATH(k.WeightGradient(s, x, y, w, w), "ConvolutionWeightGradient: b");
  s.pad_width = 3;
  EXPECT_DEATH(k.Forward(s, x, w, Tensor(), y), "paddings of 0, 3");
  s.pad_width = 0;
  s.kernel_height = 5;
  EXPECT_DEATH(k.Forward(s, x, w, Tensor(), y), "5 x 3 over images of 4 x 4");
  PoolingShape p = Window(4, 4, 3, 0);
  EXPECT_DEATH(backend_->pooling().Max(p, x, y), "MaxPool: x is");
  p.stride_height = 0;
  EXPECT_DEATH(backend_->pooling().Average(p, x, y), "strides 0, 1");
  EXPECT_DEATH(backend_->batch_norm().UpdateRunning(x, {}, 0.1f, y, y), "rows of 24 belong");
  EXPECT_DEATH(backend_->embedding().Bag(Int({3}), Random({3, 2}, "t"), BagMode::kSum,
                                         backend_->Allocate({1, 2})),
               "EmbeddingBag: index 3 of a table of 3");
  EXPECT_DEATH(backend_->CopyColumns(x, 1, x, 0, 2), "CopyColumns: 2 columns from 1");
}

INSTANTIATE_TEST_SUITE_P(Images, BackendTest, AllBackends(), BackendName);

}  // namespace
}  // namespace pipelab
