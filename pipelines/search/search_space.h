// The configurations that a search looks at. Private to search.
//
//   PIPELAB_RETURN_IF_ERROR(ForEachConfig(model, search, method, &refusals,
//                                         [&](const StepConfig& c) { return Look(c); }));
//
// All divisions of the devices into pipeline x tensor x data, micro-batches that are powers of two,
// and what the method and its schemes let vary.
#ifndef PIPELAB_PIPELINES_SEARCH_SEARCH_SPACE_H_
#define PIPELAB_PIPELINES_SEARCH_SEARCH_SPACE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

// Counts all, and those that are left out by the reason, among `refusals`. An error of `look` ends
// it.
absl::Status ForEachConfig(const StepModel& model, const SearchRequest& search,
                           const SearchMethod& method, SearchRefusals* refusals,
                           absl::FunctionRef<absl::Status(const StepConfig&)> look);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_SEARCH_SPACE_H_
