#include "models/data/random_batches.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace pipelab {
namespace {

std::vector<DataField> Fields() {
  return {{"image", FieldType::kFloat, {4, 4, 2}}, {kTargets, FieldType::kId, {3}, 5}};
}

TEST(RandomBatches, AreTheSameWhoeverAsks) {
  const RandomBatches batches(Fields(), /*samples=*/6, /*seed=*/3);
  const int image = batches.FindField("image"), targets = batches.FindField(kTargets);
  std::vector<float> all(6 * 32), two(2 * 32);
  batches.FillFloats(image, /*step=*/0, 0, absl::MakeSpan(all));
  batches.FillFloats(image, /*step=*/7, 3, absl::MakeSpan(two));
  EXPECT_TRUE(std::equal(two.begin(), two.end(), all.begin() + 3 * 32));
  // Beyond the last, from the first again.
  batches.FillFloats(image, 0, 5, absl::MakeSpan(two));
  EXPECT_TRUE(std::equal(two.begin() + 32, two.end(), all.begin()));

  std::vector<int32_t> ids(6 * 3);
  batches.FillIds(targets, 0, 0, absl::MakeSpan(ids));
  for (int32_t id : ids) {
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 5);
  }
  EXPECT_NE(*std::min_element(ids.begin(), ids.end()), *std::max_element(ids.begin(), ids.end()));
}

TEST(RandomBatches, HaveAFingerprint) {
  const auto of = [](std::vector<DataField> fields, int64_t samples, uint64_t seed) {
    return RandomBatches(std::move(fields), samples, seed).Fingerprint();
  };
  std::vector<DataField> other = Fields();
  other[1].limit = 6;
  EXPECT_EQ(of(Fields(), 6, 3), of(Fields(), 6, 3));
  EXPECT_NE(of(Fields(), 6, 3), of(Fields(), 6, 4));
  EXPECT_NE(of(Fields(), 6, 3), of(other, 6, 3));
}

TEST(RandomBatches, FloatsAreNormalAndDependOnTheSeed) {
  const RandomBatches a({{"x", FieldType::kFloat, {1000}}, {kTargets, FieldType::kFloat, {1}}}, 10,
                        1);
  const RandomBatches b({{"x", FieldType::kFloat, {1000}}, {kTargets, FieldType::kFloat, {1}}}, 10,
                        2);
  std::vector<float> x(10000), y(10000);
  a.FillFloats(0, 0, 0, absl::MakeSpan(x));
  b.FillFloats(0, 0, 0, absl::MakeSpan(y));
  EXPECT_NE(x, y);
  double sum = 0, squares = 0;
  for (float v : x) {
    sum += v;
    squares += double{v} * v;
  }
  EXPECT_NEAR(sum / 1e4, 0, 0.05);
  EXPECT_NEAR(squares / 1e4, 1, 0.06);
}

TEST(FieldsOf, EachFieldOnce) {
  ModelGraph graph;
  LayerSpec a, b;
  a.data = {Fields()[0]};
  b.data = {Fields()[0], Fields()[1]};
  graph.layers = {a, b};
  EXPECT_EQ(FieldsOf(graph), Fields());
}

TEST(RandomBatchesDeathTest, FieldsOfTheOtherType) {
  const RandomBatches batches(Fields(), 1, 1);
  std::vector<int32_t> ids(32);
  EXPECT_DEATH(batches.FillIds(0, 0, 0, absl::MakeSpan(ids)), "\"image\" is of the other type");
}

}  // namespace
}  // namespace pipelab
