// Rows that the TeraPipe paper printed (terapipe.json), as types.
//
//   PIPELAB_ASSIGN_OR_RETURN(const TeraPipePaper paper, PublishedTeraPipe());
//   paper.rows[0].gain;       // 1.517 s without token slices over 1.254 s with them
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_TERAPIPE_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_TERAPIPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct PublishedTeraPipeRow {
  int64_t row = 0, gpus = 0, batch = 0, data = 0, pipeline = 0, tensor = 0;
  std::string model;                           // a published one (models/zoo/published.h)
  double without_slices = 0, with_slices = 0;  // seconds of an iteration; 0: not printed
  double gain = 0;                             // the first over the second
  std::string tag;
};

struct TeraPipePaper {
  std::string paper, cluster;
  std::vector<PublishedTeraPipeRow> rows;
};

// The error names file, row and key; a row's degrees make its GPUs.
absl::StatusOr<TeraPipePaper> ParseTeraPipePaper(absl::string_view text, absl::string_view what);
absl::StatusOr<TeraPipePaper> PublishedTeraPipe();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_TERAPIPE_H_
