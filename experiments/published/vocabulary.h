// What was measured of vocabulary parallelism (vocabulary.json), as types: tables 5 and 6 of the
// paper, and what the authors' repository prints of a run of its own on 8 GPUs (artifact/run_exp.md).
//
//   PIPELAB_ASSIGN_OR_RETURN(const VocabularyPaper paper, PublishedVocabulary());
//   paper.cells[0].mfu;       // 46.16 % under 1F1B with 32768 words on 8 GPUs
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// A model on so many GPUs; a micro-batch is a sample of so many tokens.
struct PublishedVocabularyRun {
  std::string table;  // "table 5", "table 6", "rerun"
  std::string tag;
  int devices = 0;
  int64_t layers = 0, hidden = 0, heads = 0, tokens = 0;
};

struct PublishedVocabularyCell {
  PublishedVocabularyRun run;
  std::string system;
  int64_t vocabulary = 0;
  double mfu = 0;     // percent
  double memory = 0;  // GB, of the fullest GPU
};

struct VocabularyPaper {
  std::string paper;
  std::vector<PublishedVocabularyCell> cells;  // without those that did not fit
};

// The error names file, run, row and key.
absl::StatusOr<VocabularyPaper> ParseVocabularyPaper(absl::string_view text,
                                                     absl::string_view what);
absl::StatusOr<VocabularyPaper> PublishedVocabulary();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_
