// Published tables and figures (coverage.json), and the claims of our studies that answer each, or
// why none does.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<PublishedItem> items, PublishedItems());
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_COVERAGE_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_COVERAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct PublishedItem {
  std::string paper, what, tag;
  std::vector<std::string> claims;  // ids (report/claim.h)
  std::string not_covered;          // the reason, where there are none
};

// The error names file, item and key; an item has claims or a reason, not both.
absl::StatusOr<std::vector<PublishedItem>> ParsePublishedItems(absl::string_view text,
                                                               absl::string_view what);
absl::StatusOr<std::vector<PublishedItem>> PublishedItems();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_COVERAGE_H_
