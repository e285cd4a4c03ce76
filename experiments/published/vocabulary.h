// Cells that the paper of vocabulary parallelism drew (vocabulary.json), as types: 32 GPUs, samples
// of 2048 tokens.
//
//   PIPELAB_ASSIGN_OR_RETURN(const VocabularyPaper paper, PublishedVocabulary());
//   paper.cells[0].mfu;       // 42.8 % under 1F1B with 32768 words
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct PublishedVocabularyCell {
  std::string system;
  int64_t vocabulary = 0;
  double mfu = 0;     // percent
  double memory = 0;  // GB, of the fullest GPU; 0: not read
  std::string tag;
};

struct VocabularyPaper {
  std::string paper;
  std::vector<PublishedVocabularyCell> cells;
};

// The error names file, cell and key.
absl::StatusOr<VocabularyPaper> ParseVocabularyPaper(absl::string_view text,
                                                     absl::string_view what);
absl::StatusOr<VocabularyPaper> PublishedVocabulary();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_
