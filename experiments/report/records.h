// The numbers of tables in forms for machines.
//
//   std::string csv = RecordsCsv("quickstart", tables);
//   std::string json = RunJson("quickstart", environment, tables);
//   std::string same = DeterministicCsv(tables);
//   std::string samples = SamplesCsv(tables);
//
// records.csv is tidy: experiment, table, configuration, metric, unit, value, origin, tag, note. A
// row for each cell that is not a key, texts and missing values (empty) included. Key columns make
// the configuration: "scheme=gpipe;devices=4".
//
// deterministic.csv is what every run on every machine must have, byte for byte: table,
// configuration, metric, unit, value of the columns that nothing measured goes into
// (Column::deterministic), numbers with 12 digits.
//
// samples.csv has what measured medians were taken from: table, configuration, metric, unit, index,
// value; nothing but the header where no cell has samples.
//
// run.json has Google Benchmark's shape, for tools that compare two such files: a benchmark for
// each row of a table that has a column of time. real_time is that of the first column with unit
// ns, us, ms or s (the first measured one, if any); cpu_time is the metric "cpu_time" where there
// is one and else real_time again. All other numbers of the row are counters; a second field
// METRIC.origin says where each is from.
#ifndef PIPELAB_EXPERIMENTS_REPORT_RECORDS_H_
#define PIPELAB_EXPERIMENTS_REPORT_RECORDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "experiments/report/environment.h"
#include "experiments/report/table.h"

namespace pipelab {

std::string RecordsCsv(absl::string_view experiment, const std::vector<Table>& tables);
std::string DeterministicCsv(const std::vector<Table>& tables);
std::string SamplesCsv(const std::vector<Table>& tables);
std::string RunJson(absl::string_view experiment, const Environment& environment,
                    const std::vector<Table>& tables);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_RECORDS_H_
