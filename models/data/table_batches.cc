#include "models/data/table_batches.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "tools/base/file_fault.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Rows = TableBatchSource::Rows;

constexpr int64_t kLeastRows = 10, kClassLimit = 1 << 20;
constexpr uint64_t kRowFolds = 5;  // of which one is held out

std::vector<DataField> RowFields(const Rows& rows) {
  const DataField targets = rows.classes > 0
                                ? DataField{kTargets, FieldType::kId, {1}, rows.classes}
                                : DataField{kTargets, FieldType::kFloat, {rows.targets}};
  return {{kFeatures, FieldType::kFloat, {rows.features}}, targets};
}

// Places of the columns, features first and then targets.
absl::StatusOr<std::vector<int64_t>> ColumnsOf(const DataTable& table, absl::string_view what,
                                               const std::vector<std::string>& targets) {
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", parts...));
  };
  std::vector<int64_t> last, columns;
  for (const std::string& name : targets) {
    const int64_t column = table.Find(name);
    if (column < 0) {
      return error("no column is called \"", name, "\"; there are ",
                   absl::StrJoin(table.columns, ", "));
    }
    if (std::count(last.begin(), last.end(), column) > 0) {
      return error("target column \"", name, "\" is listed twice");
    }
    last.push_back(column);
  }
  if (last.empty()) last.push_back(table.width() - 1);
  for (int64_t c = 0; c < table.width(); ++c) {
    if (std::count(last.begin(), last.end(), c) == 0) columns.push_back(c);
  }
  if (columns.empty()) return error("no column is left to predict the targets from");
  columns.insert(columns.end(), last.begin(), last.end());
  return columns;
}

absl::StatusOr<int64_t> ClassesIn(const DataTable& table, absl::string_view what, int64_t column) {
  int64_t classes = 0;
  for (int64_t r = 0; r < table.rows(); ++r) {
    const float value = table.Value(r, column);
    if (!(value >= 0 && value < kClassLimit && value == std::floor(value))) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": row ", r + 1, ", column \"", table.columns[column], "\": ", value,
                       ": a class must be a whole number from 0 to ", kClassLimit - 1));
    }
    classes = std::max(classes, static_cast<int64_t>(value) + 1);
  }
  return classes;
}

// By the training rows; returns mean and deviation.
std::pair<double, double> StandardiseColumn(int64_t column, Rows* train, Rows* held_out) {
  const int64_t width = train->features + train->targets;
  double mean = 0, squares = 0;
  const double n = static_cast<double>(train->rows());
  for (int64_t r = 0; r < train->rows(); ++r) mean += train->values[r * width + column] / n;
  for (int64_t r = 0; r < train->rows(); ++r) {
    squares += std::pow(train->values[r * width + column] - mean, 2);
  }
  const double deviation = std::sqrt(squares / n);
  // What varies by rounding alone does not vary.
  const bool varies = deviation > 1e-6 * std::abs(mean) && deviation > 0;
  for (Rows* part : {train, held_out}) {
    for (int64_t r = 0; r < part->rows(); ++r) {
      float& v = part->values[r * width + column];
      v = varies ? static_cast<float>((v - mean) / deviation) : 0.0f;
    }
  }
  return {mean, deviation};
}

}  // namespace

TableBatchSource::TableBatchSource(Rows rows, ExampleOrder order)
    : ExampleSource(RowFields(rows), std::move(order)), rows_(std::move(rows)) {
  CHECK_EQ(examples(), rows_.rows());
}

void TableBatchSource::WriteFloats(int field, const Draw& draw, absl::Span<float> out) const {
  const int64_t width = rows_.features + rows_.targets;
  const float* from =
      rows_.values.data() + draw.example * width + (field == 0 ? 0 : rows_.features);
  std::copy(from, from + out.size(), out.begin());
}

void TableBatchSource::WriteIds(int, const Draw& draw, absl::Span<int32_t> out) const {
  const int64_t width = rows_.features + rows_.targets;
  out[0] = static_cast<int32_t>(rows_.values[draw.example * width + rows_.features]);
}

absl::StatusOr<TableData> MakeTableData(const DataTable& table, absl::string_view what,
                                        const TableOptions& options) {
  if (table.rows() < kLeastRows) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, ": ", table.rows(), " rows; must have at least ", kLeastRows, ", to hold some out"));
  }
  absl::StatusOr<std::vector<int64_t>> found = ColumnsOf(table, what, options.targets);
  // Nobody named a column that the table does not have.
  if (options.targets.empty()) found = FaultOfFile(std::move(found));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int64_t> columns, std::move(found));
  Rows train;
  train.targets = std::max<int64_t>(1, static_cast<int64_t>(options.targets.size()));
  train.features = table.width() - train.targets;
  if (options.classes) {
    if (train.targets > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": ", train.targets, " target columns; classes are in one"));
    }
    PIPELAB_ASSIGN_OR_RETURN(train.classes, FaultOfFile(ClassesIn(table, what, columns.back())));
  }
  Rows held_out = train;
  const Shuffle shuffle(static_cast<uint64_t>(table.rows()), options.seed, "data/table/split");
  for (int64_t r = 0; r < table.rows(); ++r) {
    Rows& part = shuffle.At(static_cast<uint64_t>(r)) % kRowFolds == 0 ? held_out : train;
    for (const int64_t c : columns) part.values.push_back(table.Value(r, c));
  }
  TableData data;
  for (int64_t c = 0; c < table.width(); ++c) {
    if (c >= train.features && train.classes > 0) break;
    const auto [mean, deviation] = StandardiseColumn(c, &train, &held_out);
    if (c < train.features) continue;
    data.target_mean.push_back(mean);
    data.target_deviation.push_back(deviation);
  }
  const ExampleOrder order(train.rows(), options.batch_samples, options.seed, "data"),
      in_turn(held_out.rows());
  data.train = std::make_unique<TableBatchSource>(std::move(train), order);
  data.held_out = std::make_unique<TableBatchSource>(std::move(held_out), in_turn);
  return data;
}

}  // namespace pipelab
