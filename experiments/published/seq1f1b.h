// The table that Seq1F1B's authors printed (seq1f1b.json), as types: a GPT of 7B on 32 GPUs.
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

struct Seq1F1BPaper {
  std::string paper;
  std::vector<PublishedSeq1F1BRow> rows;
  std::vector<PublishedSeq1F1BMemory> reserved;
};

// The error names file, row and key.
absl::StatusOr<Seq1F1BPaper> ParseSeq1F1BPaper(absl::string_view text, absl::string_view what);
absl::StatusOr<Seq1F1BPaper> PublishedSeq1F1B();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_SEQ1F1B_H_
