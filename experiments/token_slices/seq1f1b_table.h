// Seq1F1B's table (arXiv 2406.03488; the authors' repository): a GPT of 7B on 32 GPUs with 32768 to
// 131072 tokens, simulated beside what its authors printed.
//
// The authors print Tflop/s a GPU and tokens a second, so that a cell says what it is of: their
// count of flops a token has the sample's tokens in it. All cells are of 32 blocks of width 4096
// and 32768 words (32000, padded to a multiple of 128 for each of T = 8), and of their row's tokens
// but for one (SequenceOf).
//
// What their code says is in seq1f1b_step.h, and that its interleaved schedule refuses P = 2, so
// P = 4.
//
// What is not known is how many stages a device had where interleaved, how long a device waits
// after a synchronisation, and what a GPU's send between nodes reaches: 25 GB/s, where each has a
// card of 200 Gbit/s as in a DGX A100, down to 1/16 of that, where 8 share one of 100 Gbit/s. Each
// of these Seq1F1BChoices is simulated, and claims count over all of them. Others take the choice
// that one row of the table tells, and count over the other rows (seq1f1b_held_out.cc).
//
// The authors also drew what PyTorch had reserved of memory at most.
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
  int virtual_stages = 2;        // where interleaved
  int64_t launch_gap_us = 20;    // of one synchronisation
  double send_share = 1;         // of 25 GB/s between nodes
  std::string ToString() const;  // "V=2 gap=20us sends=1"
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

absl::StatusOr<Seq1F1BRow> SimulateRow(const PublishedSeq1F1BRow& row, const Seq1F1BChoice& choice,
                                       const ClusterSpec& cluster);

// The place of 1F1B where the paper has it, else of Seq1F1B: what the others of a row are compared
// with.
size_t BaseOf(const PublishedSeq1F1BRow& row);
// Throughput over the base's.
CellErrors RatioErrors(const std::vector<Seq1F1BRow>& rows);

struct Seq1F1BPairs {
  int all = 0, alike = 0;
};
// Which of two schemes of a row is faster. `same` leaves out cells of other tokens.
Seq1F1BPairs OrdersOf(const std::vector<Seq1F1BRow>& rows, bool same);

// The choice with the least error of a ratio in that row, and its rows.
const Seq1F1BRows& ToldBy(const std::vector<Seq1F1BRows>& all, size_t row);

// Runs that are out of memory there and here, or in neither place: of how many rows' cells.
int MemoryAlike(const Seq1F1BRows& rows);
// All choices, and the rows of the one that the first row tells.
Table Seq1F1BChoicesTable(const std::vector<Seq1F1BRows>& all);
Table Seq1F1BTable(const std::vector<Seq1F1BRows>& all, const Seq1F1BPaper& paper);
// What each row tells, and how far off the others are then.
Table Seq1F1BHeldOutTable(const std::vector<Seq1F1BRows>& all);
std::vector<Claim> Seq1F1BClaims(const std::vector<Seq1F1BRows>& all, const Seq1F1BPaper& paper);
std::vector<Claim> Seq1F1BHeldOutClaims(const std::vector<Seq1F1BRows>& all);

inline constexpr char kSeq1F1BSource[] = "Seq1F1B (arXiv 2406.03488), 7B on 32 GPUs";
inline constexpr double kSeq1F1BRatioOff = 0.1;  // that a ratio may be off

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TOKEN_SLICES_SEQ1F1B_TABLE_H_
