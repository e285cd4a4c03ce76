// Seq1F1B's table (arXiv 2406.03488; the authors' repository): a GPT of 7B on 32 GPUs with 32768 to
// 131072 tokens, simulated beside what its authors printed.
//
// The authors print Tflop/s a GPU and tokens a second, so that a cell says what it is of: their
// count of flops a token has the sample's tokens in it. All cells are of 32 blocks of width 4096
// and 32768 words (32000, padded to a multiple of 128 for each of T = 8), and of their row's tokens
// but for one (SequenceOf). What is not known is how the other factor of 4 was divided, how many
// stages a device had where interleaved, whether anything was recomputed, and what messages waited
// for: each of these Seq1F1BChoices is simulated, and claims count over all of them.
#ifndef PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_
#define PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/published/seq1f1b.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/cluster/cluster.h"
#include "tools/base/units.h"

namespace pipelab {

struct Seq1F1BChoice {
  int pipeline = 4, data = 1;  // with T = 8
  int virtual_stages = 2;      // where interleaved
  bool recompute = false;
  // As in Megatron-LM of that year: messages wait, but for an interleaved pipeline's steady phase.
  // Else they run beside compute.
  bool waits = true;

  std::string ToString() const;  // "P=4 D=1 V=2, kept, messages waited for"
};
std::vector<Seq1F1BChoice> Seq1F1BChoices();

struct Seq1F1BStep {
  double tflops = 0;  // a GPU, by the authors' count
  Bytes memory;       // of the fullest device
  bool fits = true;
};

struct Seq1F1BRow {
  PublishedSeq1F1BRow published;
  std::array<Seq1F1BStep, 4> steps;  // by kSeq1F1BSchemes
};

struct Seq1F1BRows {
  Seq1F1BChoice choice;
  std::vector<Seq1F1BRow> rows;
};

// Tokens of a sample of which a cell must be, by its Tflop/s and tokens a second; to 256. 0: the
// cell is out of memory.
int64_t SequenceOf(const PublishedSeq1F1BRow& row, size_t scheme);

// Tokens of so many slices of equal work, as the authors cut: from the last one on, whole multiples
// of T, what is left in the first.
std::vector<int64_t> EqualWorkSlices(int64_t tokens, int slices);

absl::StatusOr<Seq1F1BRow> SimulateRow(const PublishedSeq1F1BRow& row, const Seq1F1BChoice& choice,
                                       const ClusterSpec& cluster);

// Runs that are out of memory there and here, or in neither place: of how many rows' cells.
int MemoryAlike(const Seq1F1BRows& rows);
// All choices, and the rows of one of them with most of these.
Table Seq1F1BChoicesTable(const std::vector<Seq1F1BRows>& all);
Table Seq1F1BTable(const std::vector<Seq1F1BRows>& all);
std::vector<Claim> Seq1F1BClaims(const std::vector<Seq1F1BRows>& all);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_
