// The rows and reasons that `pipelab search` prints of its result.
//
//   text = SearchTable(result, figures, top);   // rows, the fastest first; ties are marked
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_SEARCH_REPORT_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_SEARCH_REPORT_H_

#include <cstddef>
#include <string>

#include "experiments/commands/step_figures.h"
#include "nlohmann/json.hpp"
#include "pipelines/search/search.h"

namespace pipelab {

// At most `top` rows. A row is a layout: the fastest of its configurations, and below it the range
// of the others. Rows within 2 % of the fastest are ties, of which the simplest comes first.
std::string SearchTable(const SearchResult& result, const StepFigures& figures, size_t top);
// The same as JSON, the fastest first.
nlohmann::json SearchRows(const SearchResult& result, const StepFigures& figures, size_t top);

// How much was looked at; and what was left out, and why.
std::string LooksText(const SearchRefusals& refusals);
std::string RefusalText(const SearchRefusals& refusals);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_SEARCH_REPORT_H_
