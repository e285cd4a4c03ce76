// Epochs that GSplit's authors published (gsplit.json), as types.
//
//   PIPELAB_ASSIGN_OR_RETURN(const GSplitPaper paper, PublishedGSplit());
//   paper.Epoch("orkut", "sage", "dgl")->total;                        // seconds
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_GSPLIT_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_GSPLIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct PublishedGraphEpoch {
  std::string graph, model, system;                   // "orkut", "gat", "gsplit"
  double sample = 0, load = 0, train = 0, total = 0;  // seconds
  std::string tag;
};

struct PublishedGraphParts {
  std::string graph, method;         // of a partition in four, "pre_samples"
  double largest = 0, crossing = 0;  // edges of a part's batches over the mean; share that cross
  std::string tag;
};

struct GSplitPaper {
  std::string paper, cluster;
  std::vector<PublishedGraphEpoch> epochs;
  std::vector<PublishedGraphParts> partitions;

  // Null where none is printed.
  const PublishedGraphEpoch* Epoch(absl::string_view graph, absl::string_view model,
                                   absl::string_view system) const;
};

// The error names file, row and key; an epoch's parts make its total, but for rounding.
absl::StatusOr<GSplitPaper> ParseGSplitPaper(absl::string_view text, absl::string_view what);
absl::StatusOr<GSplitPaper> PublishedGSplit();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_GSPLIT_H_
