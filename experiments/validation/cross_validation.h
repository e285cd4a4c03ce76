// The cost model out of sample: a cluster's calibrated values are fitted again (fit_cluster.h) with
// one whole value of a size left out, and predict the rows that have it. Calibration and validation
// then share no cell. The same rows make the lookup tables that it is compared with.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<Split> splits, CrossValidate(cluster, rows, options));
//   splits[0].size;  splits[0].value;                   // "tensor parallelism" 1
//   Summarise(splits[0].ours).mean;  Summarise(splits[0].corrected).mean;
//   splits[0].BestTable();
//   report.AddTable(SplitTable(splits));
//
// Sizes: tensor parallelism, hidden size, pipeline parallelism, samples of a micro-batch; every
// value that occurs, in turn. Where P is left out, other rows have the same passes, which a lookup
// table repeats; so the model is also shown with its predictions corrected by such rows
// (CorrectedByKnownPasses). For the other sizes there are none, and nothing is corrected.
#ifndef PIPELAB_EXPERIMENTS_VALIDATION_CROSS_VALIDATION_H_
#define PIPELAB_EXPERIMENTS_VALIDATION_CROSS_VALIDATION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/predict/measured_rows.h"
#include "experiments/predict/predict_rows.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "experiments/validation/fit_cluster.h"
#include "experiments/validation/lookup_table.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

struct Split {
  std::string size;  // whose value is left out
  int64_t value = 0;
  int64_t known = 0;                               // rows that have another value
  std::vector<RowError> ours;                      // of the rows that have it
  std::vector<RowError> corrected;                 // by passes that the other rows have, too
  std::array<double, kLookupRules.size()> tables;  // mean absolute errors of the same rows

  // The least of them: the best rule is chosen knowing the answer.
  double BestTable() const;
};

// The measured rows among `rows`, which must outlive the result. InvalidArgument where no size has
// two values. `options.every` of fit_cluster.h makes it quicker.
absl::StatusOr<std::vector<Split>> CrossValidate(const ClusterSpec& cluster,
                                                 const MeasuredRows& rows,
                                                 const FitOptions& options);

// Over all splits of one size: its rows' mean absolute error, each row predicted once.
struct SizeSummary {
  std::string size;
  double ours = 0;
};
std::vector<SizeSummary> BySize(const std::vector<Split>& splits);

Table SplitTable(const std::vector<Split>& splits);
// Whether the mean error over all splits' rows is at most 8 %, and over each size's; whether every
// split's is below its best lookup table's, as it is and corrected. Not made where there are no
// splits.
std::vector<Claim> SplitClaims(const std::vector<Split>& splits);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_VALIDATION_CROSS_VALIDATION_H_
