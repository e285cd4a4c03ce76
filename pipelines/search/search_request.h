// What a request must be, and why it may have no answer. Private to search.
//
//   PIPELAB_RETURN_IF_ERROR(CheckSearch(model, search));
//   if (best.empty()) return NothingFits(model, search, refusals);
#ifndef PIPELAB_PIPELINES_SEARCH_SEARCH_REQUEST_H_
#define PIPELAB_PIPELINES_SEARCH_SEARCH_REQUEST_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/search/search.h"
#include "pipelines/step/step_model.h"
#include "tools/base/units.h"

namespace pipelab {

// What a step may use of a device's memory.
Bytes MemoryFor(const StepModel& model, const SearchRequest& search);
// InvalidArgument naming the option.
absl::Status CheckSearch(const StepModel& model, const SearchRequest& search);
// NotFound saying what binds.
absl::Status NothingFits(const StepModel& model, const SearchRequest& search,
                         const SearchRefusals& refusals);

// A search's bounds of whole samples in a chain of stages are true of the scheme. They are not
// known to be true of a schedule file.
bool IsBounded(const Scheme& scheme);
bool IsBounded(absl::string_view scheme);
// The request's ways to recompute, or the one that it fixes.
std::vector<Recompute> RecomputesOf(const SearchRequest& search);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SEARCH_SEARCH_REQUEST_H_
