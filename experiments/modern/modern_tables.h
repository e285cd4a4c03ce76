// Tables of what came of the rows: by source, machine, model and axis.
//
//   report.AddTable(CoverageTable(all));
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_TABLES_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_TABLES_H_

#include <vector>

#include "experiments/modern/modern_results.h"
#include "experiments/report/table.h"

namespace pipelab {

Table CoverageTable(const std::vector<ModernResult>& all);  // rows by source, and why not
Table ErrorTable(const std::vector<ModernResult>& all);     // of a step's time
Table MemoryTable(const std::vector<ModernResult>& all);    // of rows that printed a peak
Table AssumedTable(const std::vector<ModernResult>& all);   // of rows with an assumed micro-batch
Table TooLargeTable(const std::vector<ModernResult>& all);  // of runs that do not fit
Table SwitchTable(const std::vector<ModernResult>& all);    // of matched experiments
Table RepeatTable(const std::vector<ModernResult>& all);    // of layouts that ran twice

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_TABLES_H_
