// As gradient_test.cc, along the edges of a block.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cases/gradient_check.h"
#include "kernels/reference/functions.h"

namespace pipelab {
namespace {

constexpr int64_t kSources = 7, kTargets = 4, kWidth = 6, kHeads = 2;
const std::vector<int32_t> kOffsets = {0, 3, 3, 4, 8}, kPlaces = {0, 5, 6, 1, 3, 3, 2, 0};
constexpr int64_t kEdges = 8;
const reference::GraphEdges kBlock = {kOffsets, kPlaces};

TEST(GraphGradient, Aggregate) {
  for (AggregateMode mode :
       {AggregateMode::kSum, AggregateMode::kMean, AggregateMode::kSelfAndSum}) {
    const Inputs in = {NormalVector(kSources * kWidth, "x")};
    const Vector dy = NormalVector(kTargets * kWidth, "dy");
    Vector dx(in[0].size());
    reference::AggregateGradient(kBlock, mode, kWidth, dy, absl::MakeSpan(dx));
    const auto loss = [&](const Inputs& v) {
      Vector y(dy.size());
      reference::Aggregate(kBlock, mode, kWidth, v[0], absl::MakeSpan(y));
      return Dot(y, dy);
    };
    CheckGradients("Aggregate", in, loss, {dx});
  }
}

TEST(GraphGradient, HeadProducts) {
  const Inputs in = {NormalVector(kSources * kWidth, "x"), NormalVector(kWidth, "w")};
  const Vector dy = NormalVector(kSources * kHeads, "dy");
  Vector dx(in[0].size()), dw(kWidth);
  reference::HeadProductsInputGradient(kWidth, kHeads, dy, in[1], absl::MakeSpan(dx));
  reference::HeadProductsWeightGradient(kWidth, kHeads, in[0], dy, absl::MakeSpan(dw));
  const auto loss = [&](const Inputs& v) {
    Vector y(dy.size());
    reference::HeadProducts(kWidth, kHeads, v[0], v[1], absl::MakeSpan(y));
    return Dot(y, dy);
  };
  CheckGradients("HeadProducts", in, loss, {dx, dw});
}

TEST(GraphGradient, EdgeSoftmax) {
  const Inputs in = {NormalVector(kSources * kHeads, "s"), NormalVector(kTargets * kHeads, "t")};
  const Vector da = NormalVector(kEdges * kHeads, "da");
  Vector a(da.size());
  const auto loss = [&](const Inputs& v) {
    reference::EdgeSoftmax(kBlock, 0.2, kHeads, v[0], v[1], absl::MakeSpan(a));
    return Dot(a, da);
  };
  loss(in);
  Vector dsums = da, ds(in[0].size()), dt(in[1].size());
  reference::EdgeSoftmaxGradient(kBlock, 0.2, kHeads, in[0], in[1], Vector(a),
                                 absl::MakeSpan(dsums), absl::MakeSpan(ds), absl::MakeSpan(dt));
  CheckGradients("EdgeSoftmax", in, loss, {ds, dt});
}

TEST(GraphGradient, Weighed) {
  const Inputs in = {NormalVector(kEdges * kHeads, "a"), NormalVector(kSources * kWidth, "x")};
  const Vector dy = NormalVector(kTargets * kWidth, "dy");
  Vector da(in[0].size()), dx(in[1].size());
  reference::WeighedGradient(kBlock, kWidth, kHeads, in[0], in[1], dy, absl::MakeSpan(da),
                             absl::MakeSpan(dx));
  const auto loss = [&](const Inputs& v) {
    Vector y(dy.size());
    reference::Weighed(kBlock, kWidth, kHeads, v[0], v[1], absl::MakeSpan(y));
    return Dot(y, dy);
  };
  CheckGradients("Weighed", in, loss, {da, dx});
}

}  // namespace
}  // namespace pipelab
