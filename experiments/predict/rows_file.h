// Measured rows of a file that the user names.
//
//   PIPELAB_ASSIGN_OR_RETURN(MeasuredRows rows, ReadMeasuredRows("--rows", "a.csv"));
#ifndef PIPELAB_EXPERIMENTS_PREDICT_ROWS_FILE_H_
#define PIPELAB_EXPERIMENTS_PREDICT_ROWS_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "experiments/predict/measured_rows.h"

namespace pipelab {

// A relative path is taken from the user's folder. Errors begin with "--rows=a.csv: ":
// InvalidArgument where no path is given, FailedPrecondition for what is wrong in the file.
absl::StatusOr<MeasuredRows> ReadMeasuredRows(absl::string_view option, const std::string& path);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PREDICT_ROWS_FILE_H_
