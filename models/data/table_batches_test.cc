#include "models/data/table_batches.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

TEST(Csv, ReadsNumbersUnderNames) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const DataTable t,
      ParseCsv("rooms, \"price, \"\"net\"\"\"\r\n1,-2.5e3\r\n\r\n \"3\" , 4", "a.csv"));
  EXPECT_THAT(t.columns, ElementsAre("rooms", "price, \"net\""));
  EXPECT_THAT(t.values, ElementsAre(1, -2500, 3, 4));
  EXPECT_EQ(t.rows(), 2);
  EXPECT_EQ(t.Value(1, t.Find("rooms")), 3);
  EXPECT_EQ(t.Find("floor"), -1);
}

TEST(Csv, ErrorsNameLineAndColumn) {
  const auto error = [](const char* text) {
    return std::string(ParseCsv(text, "a.csv").status().message());
  };
  EXPECT_EQ(error("a,b\n1,2\n\n3,x\n"), "a.csv: line 4, column \"b\": \"x\": must be a number");
  EXPECT_EQ(error("a,b\n1,\n"), "a.csv: line 2, column \"b\": \"\": must be a number");
  EXPECT_EQ(error("a,b\n1,nan\n"), "a.csv: line 2, column \"b\": \"nan\": must be a number");
  EXPECT_EQ(error("a,b\n1,1e39\n"), "a.csv: line 2, column \"b\": \"1e39\": must be a number");
  EXPECT_EQ(error("a,b\n1,2,3\n"), "a.csv: line 2: 3 cells; the header has 2 columns");
  EXPECT_EQ(error("a,a\n1,2\n"), "a.csv: line 1: two columns are called \"a\"");
  EXPECT_EQ(error("a,,b\n"), "a.csv: line 1: column 2 has no name");
  EXPECT_EQ(error("1,2\n3,4\n"),
            "a.csv: line 1: all cells are numbers; the first line must name the columns");
  EXPECT_EQ(error("a,\"b\n"), "a.csv: line 1: cell 2 has a quote that does not end before a comma");
  EXPECT_EQ(error("\n \n"), "a.csv: empty; must begin with a line of column names");
  EXPECT_EQ(error("a,b\n"), "a.csv: has column names and no row of numbers");
}

// x, y = 3 x + 100, z = row mod 3, always 7.
DataTable LineTable(int64_t rows) {
  std::string text = "x,y,z,same\n";
  for (int64_t r = 0; r < rows; ++r)
    absl::StrAppend(&text, r, ",", 3 * r + 100, ",", r % 3, ",7\n");
  return *ParseCsv(text, "line.csv");
}

// One pass over the examples, as steps of one sample or, in turn, as one step.
std::vector<float> All(const TableBatchSource& source, int field, bool training) {
  const int64_t size = source.fields()[field].size();
  std::vector<float> out(source.examples() * size);
  for (int64_t i = 0; i < source.examples(); ++i) {
    source.FillFloats(field, training ? i : 0, training ? 0 : i,
                      absl::MakeSpan(out).subspan(i * size, size));
  }
  return out;
}

TEST(TableBatches, AreStandardisedByTheTrainingRowsAlone) {
  TableOptions options;
  options.targets = {"y"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TableData data, MakeTableData(LineTable(100), "a", options));
  EXPECT_EQ(data.train->examples(), 80);
  EXPECT_EQ(data.held_out->examples(), 20);
  EXPECT_EQ(data.train->Field(kFeatures).shape, std::vector<int64_t>{3});
  const std::vector<float> x = All(*data.train, 0, true), y = All(*data.train, 1, true);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    sum += y[i];
    squares += y[i] * y[i];
    EXPECT_NEAR(x[3 * i], y[i], 1e-5) << i;  // a line stays one
    EXPECT_EQ(x[3 * i + 2], 0);
  }
  EXPECT_NEAR(sum, 0, 1e-3);
  EXPECT_NEAR(squares, 80, 1e-3);
  // Held-out rows are none of the training rows, and undone they are whole numbers of the line.
  const std::vector<float> held_out = All(*data.held_out, 1, false);
  for (const float v : held_out) {
    EXPECT_EQ(std::count(y.begin(), y.end(), v), 0);
    const double row = (v * data.target_deviation[0] + data.target_mean[0] - 100) / 3;
    EXPECT_NEAR(row, std::round(row), 1e-3);
  }
}

TEST(TableBatches, TargetsAreOneColumnSeveralOrClasses) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TableData last, MakeTableData(LineTable(20), "a", {}));
  EXPECT_EQ(last.train->Field(kTargets).shape, std::vector<int64_t>{1});
  EXPECT_EQ(last.target_mean[0], 7);
  TableOptions options;
  options.targets = {"z", "x"};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TableData two, MakeTableData(LineTable(20), "a", options));
  EXPECT_EQ(two.train->Field(kTargets).shape, std::vector<int64_t>{2});
  options.targets = {"z"};
  options.classes = true;
  options.batch_samples = 16;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TableData classes, MakeTableData(LineTable(20), "a", options));
  EXPECT_EQ(classes.train->Field(kTargets).limit, 3);
  std::vector<int32_t> ids(16);
  classes.train->FillIds(1, 0, 0, absl::MakeSpan(ids));
  EXPECT_THAT(ids, testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(3))));
  EXPECT_THAT(ids, testing::Contains(2));
}

TEST(TableBatches, ErrorsSayWhatWouldBeRight) {
  const auto error = [](const DataTable& table, std::vector<std::string> targets, bool classes) {
    TableOptions options;
    options.targets = std::move(targets);
    options.classes = classes;
    return std::string(MakeTableData(table, "a.csv", options).status().message());
  };
  EXPECT_EQ(error(LineTable(9), {}, false),
            "a.csv: 9 rows; must have at least 10, to hold some out");
  EXPECT_EQ(error(LineTable(20), {"price"}, false),
            "a.csv: no column is called \"price\"; there are x, y, z, same");
  EXPECT_EQ(error(LineTable(20), {"y", "y"}, false), "a.csv: target column \"y\" is listed twice");
  EXPECT_EQ(error(LineTable(20), {"x", "y", "z", "same"}, false),
            "a.csv: no column is left to predict the targets from");
  EXPECT_EQ(error(LineTable(20), {"x", "y"}, true), "a.csv: 2 target columns; classes are in one");
  DataTable table = LineTable(20);
  table.values[6] = 0.5;  // row 2, z
  EXPECT_EQ(error(table, {"z"}, true),
            "a.csv: row 2, column \"z\": 0.5: a class must be a whole number from 0 to 1048575");
}

}  // namespace
}  // namespace pipelab
