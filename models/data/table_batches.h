// Batches of a table's rows: columns to predict from the others.
//
//   PIPELAB_ASSIGN_OR_RETURN(TableData data, MakeTableData(table, "houses.csv", {.targets =
//   {"price"}})); data.train->fields();   // "features", floats [columns but the targets];
//   "targets", floats [1]
//
// One row in five is held out, drawn by the seed. Each column is (x - mean) / deviation of the
// training rows, targets too; a column that does not vary there is 0. With `classes` the one target
// column holds whole numbers from 0 instead, and becomes ids for a classifier.
#ifndef PIPELAB_MODELS_DATA_TABLE_BATCHES_H_
#define PIPELAB_MODELS_DATA_TABLE_BATCHES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/csv.h"
#include "models/data/example_source.h"

namespace pipelab {

inline constexpr char kFeatures[] = "features";  // the field of a table's other columns

struct TableOptions {
  std::vector<std::string> targets;  // column names; empty: the last column
  bool classes = false;
  int64_t batch_samples = 1;  // of a step
  uint64_t seed = 1;
};

class TableBatchSource final : public ExampleSource {
 public:
  struct Rows {
    int64_t features = 0, targets = 0;
    int64_t classes = 0;        // 0: targets are numbers
    std::vector<float> values;  // [row, features and targets]
    int64_t rows() const { return static_cast<int64_t>(values.size()) / (features + targets); }
  };

  // The order's examples are the rows (CHECKed).
  TableBatchSource(Rows rows, ExampleOrder order);

 private:
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const Rows rows_;
};

struct TableData {
  std::unique_ptr<TableBatchSource> train;            // shuffled anew in each pass
  std::unique_ptr<TableBatchSource> held_out;         // in turn
  std::vector<double> target_mean, target_deviation;  // of the training rows, to undo it
};

// InvalidArgument, "WHAT: ...": an unknown or repeated target, nothing left to predict from, fewer
// than ten rows, classes that are no whole numbers from 0.
absl::StatusOr<TableData> MakeTableData(const DataTable& table, absl::string_view what,
                                        const TableOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TABLE_BATCHES_H_
