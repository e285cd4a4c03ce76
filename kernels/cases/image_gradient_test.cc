// As gradient_test.cc, for image kernels and embedding bags.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cases/gradient_check.h"
#include "kernels/cases/image_shapes.h"
#include "kernels/reference/functions.h"

namespace pipelab {
namespace {

TEST(Gradient, Convolution) {
  for (const ConvolutionShape& s : ConvolutionShapes(CaseSize::kSmall)) {
    const int64_t taps = s.kernel_height * s.kernel_width;
    const Inputs in = {NormalVector(s.samples * s.height * s.width * s.in_channels, "x"),
                       NormalVector(taps * (s.depthwise ? 1 : s.in_channels) * s.out_channels, "w"),
                       NormalVector(s.out_channels, "b")};
    const Vector dy =
        NormalVector(s.samples * s.out_height() * s.out_width() * s.out_channels, "dy");
    Vector dx(in[0].size()), dw(in[1].size()), db(in[2].size());
    reference::ConvolutionInputGradient(s, dy, in[1], absl::MakeSpan(dx));
    reference::ConvolutionWeightGradient(s, in[0], dy, absl::MakeSpan(dw), absl::MakeSpan(db));
    const auto loss = [&](const Inputs& v) {
      Vector y(dy.size());
      reference::Convolution(s, v[0], v[1], v[2], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("Convolution ", ToString(s)), in, loss, {dx, dw, db});
  }
}

// One pixel of an image of ones, by hand: the middle sees the whole kernel, a corner four taps.
TEST(Reference, ConvolutionPadsWithZeros) {
  ConvolutionShape s;
  s.samples = 1;
  s.height = s.width = 3;
  s.in_channels = s.out_channels = 1;
  s.kernel_height = s.kernel_width = 3;
  s.pad_height = s.pad_width = 1;
  const Vector x(9, 1), w = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Vector y(9);
  reference::Convolution(s, x, w, {}, absl::MakeSpan(y));
  EXPECT_EQ(y, Vector({5 + 6 + 8 + 9, 4 + 5 + 6 + 7 + 8 + 9, 4 + 5 + 7 + 8,  //
                       2 + 3 + 5 + 6 + 8 + 9, 45, 1 + 2 + 4 + 5 + 7 + 8,     //
                       2 + 3 + 5 + 6, 1 + 2 + 3 + 4 + 5 + 6, 1 + 2 + 4 + 5}));
}

TEST(Gradient, Pooling) {
  for (const PoolingShape& s : PoolingShapes(CaseSize::kSmall)) {
    const Inputs in = {NormalVector(s.samples * s.height * s.width * s.channels, "x")};
    const Vector dy = NormalVector(s.samples * s.out_height() * s.out_width() * s.channels, "dy");
    Vector dx(in[0].size()), y(dy.size());
    reference::MaxPoolGradient(s, dy, in[0], absl::MakeSpan(dx));
    const auto max = [&](const Inputs& v) {
      reference::MaxPool(s, v[0], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("MaxPool ", ToString(s)), in, max, {dx});
    reference::AveragePoolGradient(s, dy, absl::MakeSpan(dx));
    const auto average = [&](const Inputs& v) {
      reference::AveragePool(s, v[0], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients(absl::StrCat("AveragePool ", ToString(s)), in, average, {dx});
  }
}

TEST(Gradient, BatchNorm) {
  for (const RowsSize& s : BatchNormShapes(CaseSize::kSmall)) {
    const int64_t n = s.rows * s.columns, c = s.columns;
    const Inputs in = {NormalVector(n, "x"), NormalVector(c, "gamma"), NormalVector(c, "beta")};
    const Vector dy = NormalVector(n, "dy");
    Vector y(n), mean(c), variance(c), dx(n), dgamma(c), dbeta(c);
    const auto loss = [&](const Inputs& v) {
      reference::BatchNorm(s, v[0], v[1], v[2], absl::MakeSpan(y), absl::MakeSpan(mean),
                           absl::MakeSpan(variance));
      return Dot(y, dy);
    };
    loss(in);  // the statistics
    reference::BatchNormInputGradient(s, dy, in[0], in[1], mean, variance, absl::MakeSpan(dx),
                                      absl::MakeSpan(dgamma), absl::MakeSpan(dbeta));
    CheckGradients(absl::StrCat("BatchNorm ", s.rows, "x", s.columns), in, loss,
                   {dx, dgamma, dbeta});
  }
}

TEST(Gradient, Relu) {
  const Inputs in = {NormalVector(40, "x")};
  const Vector dy = NormalVector(40, "dy");
  Vector y(40), dx(40);
  const auto loss = [&](const Inputs& v) {
    reference::Relu(v[0], absl::MakeSpan(y));
    return Dot(y, dy);
  };
  loss(in);
  reference::ReluGradient(dy, y, absl::MakeSpan(dx));
  CheckGradients("Relu", in, loss, {dx});
}

TEST(Gradient, EmbeddingBag) {
  for (const BagShape& s : BagShapes(CaseSize::kSmall)) {
    const RowsSize rows{s.samples, s.width};
    std::vector<int32_t> ids = RandomIndices(s.samples * s.bag, s.rows);
    if (s.bag > 2) ids[1] = kNoId;
    const Inputs in = {NormalVector(s.rows * s.width, "table")};
    const Vector dy = NormalVector(s.samples * s.width, "dy");
    Vector dtable(in[0].size()), y(dy.size());
    reference::EmbeddingBagWeightGradient(rows, ids, dy, s.mode, absl::MakeSpan(dtable));
    const auto loss = [&](const Inputs& v) {
      reference::EmbeddingBag(rows, ids, v[0], s.mode, absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients("EmbeddingBag", in, loss, {dtable});
  }
}

}  // namespace
}  // namespace pipelab
