// Descriptors: split, standardisation, neighbours, batches; the table of cox2, made and real.
// The real one, where it is in the cache:
//   bazel run //models/data:fetch && bazel test --test_env=PIPELAB_DATA=$HOME/.cache/pipelab/data
//   //models/data:data_test
#include "models/data/descriptors.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/cox2.h"
#include "models/data/metrics.h"
#include "models/data/r_serialization.h"
#include "models/data/r_test_writer.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SplitDescriptors, FoldsAreAPartition) {
  const DescriptorTable table = SyntheticDescriptors(53, 1);
  std::multiset<int64_t> sizes;
  int64_t held_out = 0;
  for (int fold = 0; fold < kFolds; ++fold) {
    const DescriptorData data = SplitDescriptors(table, fold, 1);
    EXPECT_EQ(data.train->compounds() + data.held_out->compounds(), 53);
    EXPECT_NEAR(static_cast<double>(data.held_out->compounds()), 53.0 / kFolds, 1);
    held_out += data.held_out->compounds();
    EXPECT_EQ(data.name, "synthetic");
  }
  EXPECT_EQ(held_out, 53);
}

TEST(SplitDescriptors, StandardisedByTheTrainingPart) {
  DescriptorTable table = SyntheticDescriptors(100, 1);
  for (int64_t i = 0; i < 100; ++i) table.values[i * table.columns + 7] = 3.1f;  // does not vary
  const DescriptorData data = SplitDescriptors(table, 2, 1);
  for (int64_t c = 0; c < table.columns; ++c) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < data.train->compounds(); ++i) {
      const double v = data.train->values[i * table.columns + c];
      sum += v;
      squares += v * v;
    }
    const double n = static_cast<double>(data.train->compounds());
    EXPECT_NEAR(sum / n, 0, 1e-5);
    EXPECT_NEAR(squares / n, c == 7 ? 0 : 1, 1e-5);
  }
  // Held-out numbers are on the same scale, and targets can be undone.
  const DescriptorData other = SplitDescriptors(table, 1, 1);
  EXPECT_NE(data.target_mean, other.target_mean);
  std::multiset<float> back, all(table.targets.begin(), table.targets.end());
  for (const auto& part : {data.train, data.held_out}) {
    for (const float t : part->targets) {
      back.insert(static_cast<float>(t * data.target_deviation + data.target_mean));
    }
  }
  for (auto a = back.begin(), b = all.begin(); b != all.end(); ++a, ++b) EXPECT_NEAR(*a, *b, 1e-4);
}

DescriptorTable OnALine(const std::vector<float>& places, const std::vector<float>& targets) {
  DescriptorTable table;
  table.families = {{"x", 0, 1}};
  table.columns = 1;
  table.values = places;
  table.targets = targets;
  return table;
}

TEST(NearestNeighbours, ByHand) {
  const DescriptorTable train = OnALine({0, 1, 2, 10}, {1, 2, 6, 100});
  const DescriptorTable asked = OnALine({0.9f, 9, 1}, {0, 0, 0});
  EXPECT_THAT(NearestNeighbours(train, asked, 1), ElementsAre(2, 100, 2));
  EXPECT_THAT(NearestNeighbours(train, asked, 2), ElementsAre(1.5f, 53, 1.5f));  // 0 before 2
  EXPECT_THAT(NearestNeighbours(train, asked, 4), ElementsAre(27.25f, 27.25f, 27.25f));
}

TEST(NearestNeighbours, BeatsTheMeanOnSyntheticData) {
  const DescriptorData data = SplitDescriptors(SyntheticDescriptors(400, 1), 0, 1);
  const double r2 =
      RSquared(data.held_out->targets, NearestNeighbours(*data.train, *data.held_out, 5));
  EXPECT_GT(r2, 0.3);
  EXPECT_LT(r2, 0.95);
}

TEST(DescriptorBatchSource, AFieldAFamily) {
  const DescriptorData data = SplitDescriptors(SyntheticDescriptors(50, 1), 0, 1);
  const DescriptorBatchSource source(data.held_out, ExampleOrder(data.held_out->compounds()));
  ASSERT_EQ(source.fields().size(), 4u);
  EXPECT_EQ(source.fields()[1], (DataField{"b", FieldType::kFloat, {20}}));
  EXPECT_EQ(source.targets_per_sample(), 1);
  std::vector<float> b(40), c(9), t(1);
  source.FillFloats(1, 0, 2, absl::MakeSpan(b));
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(b[i], data.held_out->values[(2 + i / 20) * 35 + 6 + i % 20]);
  }
  source.FillFloats(2, 0, 3, absl::MakeSpan(c));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(c[i], data.held_out->values[3 * 35 + 26 + i]);
  source.FillFloats(3, 0, 3, absl::MakeSpan(t));
  EXPECT_EQ(t[0], data.held_out->targets[3]);
}

// An .RData file with three compounds and descriptors of these names.
std::string Cox2File(const std::vector<std::string>& names, double second_ic50) {
  RWriter w;
  w.Bytes("RDX3\n").Begin(3).Cell("cox2Descr");
  w.List(static_cast<uint32_t>(names.size()), RWriter::kHasAttributes);
  for (size_t i = 0; i < names.size(); ++i) {
    const int32_t v = static_cast<int32_t>(i);
    if (i % 2 == 0) w.Integers({v, 10 + v, 20 + v});
    if (i % 2 == 1) w.Doubles({v + 0.5, v + 10.5, v + 20.5});
  }
  w.Cell("names").Strings(names).Null();
  w.Cell("cox2IC50").Doubles({0.01, second_ic50, 100}).Null();
  return ZlibOf(w.bytes());
}

absl::StatusOr<DescriptorTable> Load(const std::string& file) {
  const std::string root = *MakeTemporaryDirectory(JoinPath(testing::TempDir(), "cox2-"));
  const std::string dir = JoinPath(root, "usr/lib/R/site-library/caret/data");
  EXPECT_THAT(MakeDirectories(dir), IsOk());
  EXPECT_THAT(WriteFileAtomically(JoinPath(dir, "cox2.RData"), file), IsOk());
  return LoadCox2(root);
}

TEST(Cox2, FamiliesColumnsAndTargets) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DescriptorTable table,
                               Load(Cox2File({"Q_.a", "m2_c_d", "Q_b"}, 10)));
  ASSERT_EQ(table.families.size(), 2u);
  EXPECT_EQ(table.families[0].name, "Q");
  EXPECT_EQ(table.families[0].count, 2);
  EXPECT_EQ(table.families[1].name, "m2");
  EXPECT_EQ(table.families[1].first, 2);
  EXPECT_THAT(table.values, ElementsAre(0, 2, 1.5f, 10, 12, 11.5f, 20, 22, 21.5f));
  EXPECT_THAT(table.targets, ElementsAre(-2, 1, 2));
}

TEST(Cox2, DamageIsNamed) {
  const auto expect = [](const std::string& file, const char* words) {
    EXPECT_THAT(Load(file),
                StatusIs(absl::StatusCode::kDataLoss,
                         testing::AllOf(HasSubstr("data/cox2.RData: "), HasSubstr(words))));
  };
  expect(Cox2File({"Q_a", "_b"}, 10), "'_b' names no family");
  expect(Cox2File({"Q_a"}, 0), "'cox2IC50', row 2: 0; it must be above 0");
  expect(Cox2File({"Q_a", "Q_b"}, std::nan("")), "row 2: nan");
  expect(ZlibOf(RWriter().Bytes("RDX3\n").Begin(3).Cell("x").Integers({1}).Null().bytes()),
         "column 'cox2IC50' is not there");
  expect("rubbish", "not an R data file");
  expect(Cox2File({"Q_a"}, 1).substr(0, 60), "ends too early");
}

TEST(Cox2, RealTable) {
  const auto dir = FindDebianPackage(CaretPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) {
    GTEST_SKIP() << dir.status().message() << "; see the top of this file";
  }
  ASSERT_THAT(dir, IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const DescriptorTable table, LoadCox2(*dir));
  EXPECT_EQ(table.compounds(), 462);
  ASSERT_EQ(table.families.size(), 3u);
  const std::vector<std::pair<std::string, int64_t>> want = {
      {"QikProp", 34}, {"moeGao", 27}, {"moe2D", 194}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(table.families[i].name, want[i].first);
    EXPECT_EQ(table.families[i].count, want[i].second);
  }
  EXPECT_NEAR(NearestNeighboursRSquared(table, 5, 1), 0.376, 0.06);
}

}  // namespace
}  // namespace pipelab
