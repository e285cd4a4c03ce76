#include "experiments/report/records.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/markup.h"
#include "nlohmann/json.hpp"
#include "tools/base/json.h"

namespace pipelab {
namespace {

bool IsTime(const Column& c) {
  return c.origin != Origin::kKey &&
         (c.unit == "ns" || c.unit == "us" || c.unit == "ms" || c.unit == "s");
}

// -1 for a row without a time.
int TimeColumn(const Table& table, int row) {
  int first = -1;
  for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
    if (!IsTime(table.columns()[c]) || !table.rows()[row][c].number) continue;
    if (table.columns()[c].origin == Origin::kMeasured) return c;
    if (first < 0) first = c;
  }
  return first;
}

nlohmann::json Benchmark(absl::string_view experiment, const Table& table, int row,
                         int time_column) {
  const std::string name = absl::StrCat(experiment, "/", table.id(), "/", table.RowKey(row));
  const double time = *table.rows()[row][time_column].number;
  nlohmann::json b = {{"name", name},
                      {"run_name", name},
                      {"run_type", "iteration"},
                      {"repetitions", 1},
                      {"repetition_index", 0},
                      {"threads", 1},
                      {"iterations", 1},
                      {"real_time", time},
                      {"cpu_time", time},
                      {"time_unit", table.columns()[time_column].unit}};
  for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
    const Column& column = table.columns()[c];
    const Cell& cell = table.rows()[row][c];
    if (column.origin == Origin::kKey || !cell.number) continue;
    b[column.metric] = *cell.number;
    b[column.metric + ".origin"] = std::string(OriginName(column.origin));
  }
  return b;
}

// Cells of columns that are no keys.
template <typename Visit>
void ForEachCell(const std::vector<Table>& tables, const Visit& visit) {
  for (const Table& table : tables) {
    for (int r = 0; r < static_cast<int>(table.rows().size()); ++r) {
      for (int c = 0; c < static_cast<int>(table.columns().size()); ++c) {
        const Column& column = table.columns()[c];
        if (column.origin != Origin::kKey) visit(table, r, column, table.rows()[r][c]);
      }
    }
  }
}

}  // namespace

std::string RecordsCsv(absl::string_view experiment, const std::vector<Table>& tables) {
  std::string csv = "experiment,table,configuration,metric,unit,value,origin,tag,note\n";
  ForEachCell(tables, [&](const Table& table, int row, const Column& column, const Cell& cell) {
    const std::string value = cell.missing  ? ""
                              : cell.number ? FullNumber(*cell.number)
                                            : cell.text;
    absl::StrAppend(&csv, CsvField(experiment), ",", table.id(), ",", CsvField(table.RowKey(row)),
                    ",", column.metric, ",", CsvField(column.unit), ",", CsvField(value), ",",
                    OriginName(column.origin), ",", CsvField(cell.tag), ",", CsvField(cell.note),
                    "\n");
  });
  return csv;
}

std::string DeterministicCsv(const std::vector<Table>& tables) {
  std::string csv = "table,configuration,metric,unit,value\n";
  ForEachCell(tables, [&](const Table& table, int row, const Column& column, const Cell& cell) {
    if (!column.deterministic()) return;
    const std::string value = cell.missing  ? ""
                              : cell.number ? absl::StrFormat("%.12g", *cell.number)
                                            : cell.text;
    absl::StrAppend(&csv, table.id(), ",", CsvField(table.RowKey(row)), ",", column.metric, ",",
                    CsvField(column.unit), ",", CsvField(value), "\n");
  });
  return csv;
}

std::string SamplesCsv(const std::vector<Table>& tables) {
  std::string csv = "table,configuration,metric,unit,index,value\n";
  ForEachCell(tables, [&](const Table& table, int row, const Column& column, const Cell& cell) {
    for (size_t i = 0; i < cell.samples.size(); ++i) {
      absl::StrAppend(&csv, table.id(), ",", CsvField(table.RowKey(row)), ",", column.metric, ",",
                      CsvField(column.unit), ",", i, ",", FullNumber(cell.samples[i]), "\n");
    }
  });
  return csv;
}

std::string RunJson(absl::string_view experiment, const Environment& env,
                    const std::vector<Table>& tables) {
  nlohmann::json benchmarks = nlohmann::json::array();
  for (const Table& table : tables) {
    for (int r = 0; r < static_cast<int>(table.rows().size()); ++r) {
      const int time_column = TimeColumn(table, r);
      if (time_column >= 0) benchmarks.push_back(Benchmark(experiment, table, r, time_column));
    }
  }
  const nlohmann::json context = {
      {"date", env.date},         {"executable", std::string(experiment)},
      {"num_cpus", env.cores},    {"cpu", env.cpu},
      {"gpu", env.gpu},           {"commit", env.commit},
      {"compiler", env.compiler}, {"library_build_type", env.build == "opt" ? "release" : "debug"}};
  return DumpJson({{"context", context}, {"benchmarks", benchmarks}});
}

}  // namespace pipelab
