// Half of the rows that the Megatron-LM paper printed in its Table 1 (megatron.json), as types.
//
//   PIPELAB_ASSIGN_OR_RETURN(const MegatronPaper paper, PublishedMegatron());
//   paper.rows[0].tflops;       // 138, of a GPU, counted by the paper's formula
//
// Every value keeps its tag: "read" in the paper, "derived", ...
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_MEGATRON_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_MEGATRON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/units.h"

namespace pipelab {

struct PublishedMegatronRow {
  double parameters = 0;
  int64_t heads = 0, hidden = 0, layers = 0;
  int64_t tensor = 0, pipeline = 0, gpus = 0;
  int64_t batch = 0, micro_batch = 0;
  int64_t virtual_stages = 0;  // the paper prints the layers of one where there are many
  double tflops = 0;           // of a GPU
  std::string tag;

  int64_t data() const { return gpus / (tensor * pipeline); }
  int64_t micro_batches() const { return batch / (data() * micro_batch); }  // of one pipeline
};

struct MegatronPaper {
  std::string paper, cluster;
  int64_t tokens = 0, vocabulary = 0;
  std::vector<PublishedMegatronRow> rows;

  // The flops of an iteration, as the paper counts them: 96 B s l h^2 (1 + s / 6h + V / 16lh),
  // which has the forward twice, since activations are recomputed.
  Flops FlopsOf(const PublishedMegatronRow& row) const;
};

// The error names file, row and key; a row's sizes divide one another as they must.
absl::StatusOr<MegatronPaper> ParseMegatronPaper(absl::string_view text, absl::string_view what);
absl::StatusOr<MegatronPaper> PublishedMegatron();  // of the file that comes with the project

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_MEGATRON_H_
