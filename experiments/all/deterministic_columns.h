// Two files of deterministic columns (report/records.h), beside one another.
//
//   CompareLines(committed, result.deterministic)     // "equal", or what differs
#ifndef PIPELAB_EXPERIMENTS_ALL_DETERMINISTIC_COLUMNS_H_
#define PIPELAB_EXPERIMENTS_ALL_DETERMINISTIC_COLUMNS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "experiments/all/result_folder.h"

namespace pipelab {

// Why a result has no deterministic column at all, where none of its claims could be made: the
// inputs that it needs are not here. Empty: it has some, or should have.
std::string WhyNothingToCompare(const ResultFolder& result);

// "equal", or how many lines differ and what the first of them is; `other` is what `reference` is
// called there.
std::string CompareLines(absl::string_view reference, absl::string_view ours,
                         absl::string_view other = "committed");

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ALL_DETERMINISTIC_COLUMNS_H_
