// Where each device's step went, as a table: a row a device and one for all.
//
//   Table t = BreakdownTable("breakdown_1f1b_measured", "1f1b", analysis);
//
// The columns' origin is the trace's. docs/results.md says what each column is.
#ifndef PIPELAB_EXPERIMENTS_REPORT_BREAKDOWN_H_
#define PIPELAB_EXPERIMENTS_REPORT_BREAKDOWN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "experiments/report/table.h"
#include "pipelines/analysis/analysis.h"

namespace pipelab {

Table BreakdownTable(std::string id, absl::string_view scheme, const TraceAnalysis& analysis);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_BREAKDOWN_H_
