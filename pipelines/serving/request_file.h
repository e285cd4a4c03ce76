// Requests in a CSV file: when each arrives, and its tokens.
//
//   arrival,prompt,output
//   12.5 ms,80,200
//
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<Request> requests, ReadRequests("--requests", "a.csv"));
//
// Rows are in the order of arrival. InvalidArgument, one line: "--requests=a.csv: row 2: prompt
// "x": must be a whole number from 1 to 1000000000".
#ifndef PIPELAB_PIPELINES_SERVING_REQUEST_FILE_H_
#define PIPELAB_PIPELINES_SERVING_REQUEST_FILE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/serving/pass_plan.h"

namespace pipelab {

// FailedPrecondition where the file is wrong.
absl::StatusOr<std::vector<Request>> ReadRequests(absl::string_view option, absl::string_view path);
// `what` names the text in errors.
absl::StatusOr<std::vector<Request>> ParseRequests(absl::string_view text, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SERVING_REQUEST_FILE_H_
