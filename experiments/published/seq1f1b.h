// The table that Seq1F1B's authors printed (seq1f1b.json), as types: a GPT of 7B on 32 GPUs. And
// what others logged of the authors' code.
//
//   PIPELAB_ASSIGN_OR_RETURN(const Seq1F1BPaper paper, PublishedSeq1F1B());
//   paper.rows[0].tflops[2];       // 124.62 Tflop/s a GPU under seq1f1b
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_SEQ1F1B_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_SEQ1F1B_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

inline constexpr const char* kSeq1F1BSchemes[] = {"1f1b", "interleaved", "seq1f1b",
                                                  "interleaved_seq1f1b"};

struct PublishedSeq1F1BRow {
  int64_t tokens = 0, micro_batches = 0;
  std::array<double, 4> tflops = {};  // a GPU, by kSeq1F1BSchemes; 0: out of memory
  std::array<double, 4> tokens_per_second = {};
  std::string tag;
};

// What PyTorch had reserved of a GPU at most: bars of a figure in the authors' repository
// (7bx32A100_memory.svg, the right one), by their coordinates.
struct PublishedSeq1F1BMemory {
  int64_t tokens = 0;
  std::array<double, 4> gib = {};  // by kSeq1F1BSchemes; 0: out of memory
  std::string tag;
};

// A run of the authors' code by others, of a GPT on 8 GPUs, P = 4: 8 samples a step, one in each
// micro-batch. Steps 2 to 5 of 5, on average.
struct PublishedSeq1F1BRun {
  int64_t layers = 0, hidden = 0, heads = 0, tensor = 0, tokens = 0;
  int64_t slices = 0;  // 1: 1F1B
  double tokens_per_second = 0;
  // A step's passes on the rank that takes the least, and on the one that takes the most.
  std::array<double, 2> forward_ms = {}, backward_ms = {};
  std::array<double, 4> allocated_mib = {};  // at most in the first step, by stage
  std::array<double, 4> reserved_gib = {};   // at most, by stage
  std::string tag;
};

struct Seq1F1BPaper {
  std::string paper;
  std::vector<PublishedSeq1F1BRow> rows;
  std::vector<PublishedSeq1F1BMemory> reserved;
  std::string runs_source;
  std::vector<PublishedSeq1F1BRun> runs;
};

// The error names file, row and key.
absl::StatusOr<Seq1F1BPaper> ParseSeq1F1BPaper(absl::string_view text, absl::string_view what);
absl::StatusOr<Seq1F1BPaper> PublishedSeq1F1B();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_SEQ1F1B_H_
