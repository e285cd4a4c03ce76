// Columns of an R data frame, as numbers or strings, all of one length.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto stars, NumberColumn(frame, "rating", what));
#ifndef PIPELAB_MODELS_DATA_R_COLUMNS_H_
#define PIPELAB_MODELS_DATA_R_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/r_value.h"

namespace pipelab {

// Integers or doubles; R's missing is NaN. DataLoss when the column is not there or is neither.
absl::StatusOr<std::vector<double>> NumberColumn(const RValue& frame, absl::string_view name,
                                                 absl::string_view what);
absl::StatusOr<std::vector<double>> Numbers(const RValue& value, absl::string_view name,
                                            absl::string_view what);
// Strings or a factor's labels.
absl::StatusOr<std::vector<std::string>> StringColumn(const RValue& frame, absl::string_view name,
                                                      absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_R_COLUMNS_H_
