// Rows of Seq1F1B's table (arXiv 2406.03488): a GPT of 7B on 32 GPUs with 65536 and 131072 tokens,
// simulated beside what its authors printed.
#ifndef PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_
#define PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/seq1f1b.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct Seq1F1BStep {
  double tflops = 0;  // a GPU, by the count of a whole attention
  Bytes memory;       // of the fullest device
  bool fits = true;
};

struct Seq1F1BRow {
  PublishedSeq1F1BRow published;
  std::array<Seq1F1BStep, 4> steps;  // by kSeq1F1BSchemes
};

// Tokens of so many slices of equal work, as the authors cut: in multiples of 128, of blocks of this
// width under causal attention.
std::vector<int64_t> EqualWorkSlices(int64_t tokens, int slices, int64_t hidden);

absl::StatusOr<Seq1F1BRow> SimulateRow(const PublishedSeq1F1BRow& row, const ClusterSpec& cluster);
Table Seq1F1BTable(const std::vector<Seq1F1BRow>& rows);
std::vector<Claim> Seq1F1BClaims(const std::vector<Seq1F1BRow>& rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_
