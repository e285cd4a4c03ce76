// What was measured of vocabulary parallelism (vocabulary.json), as types: tables 5 and 6 of the
// paper; later runs on 8 GPUs that the authors' repository prints (artifact/run_exp.md and
// README.md); and the log of table 5's runs on 8 GPUs.
//
//   PIPELAB_ASSIGN_OR_RETURN(const VocabularyPaper paper, PublishedVocabulary());
//   paper.cells[0].mfu;       // 46.16 % under 1F1B with 32000 words on 8 GPUs
//   paper.logs[0].step_ms;    // 5489.9 ms, the same run
//
// The log says what the paper does not. Words are thousands. Each of table 5's 40 MFUs on 8 GPUs is
// the logged rate over 320 Tflop/s, to the last digit, where later runs have the A100's 312; its
// other GPUs are taken to be like these. Nothing is known of table 6, which is taken to have 312.
// Memory is in GiB: what PyTorch had allocated at most in table 5, reserved in later runs.
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
  std::string table;  // "table 5", "table 6", "rerun", "quick run 1", "quick run 2"
  std::string tag;
  double peak_tflops = 0;  // which MFU is of
  int devices = 0;
  int64_t layers = 0, hidden = 0, heads = 0, tokens = 0;
};

struct PublishedVocabularyCell {
  PublishedVocabularyRun run;
  std::string system;
  int64_t vocabulary = 0;
  double mfu = 0;     // percent
  double memory = 0;  // GiB, of the fullest GPU
};

// One step of a run of table 5: 128 micro-batches of one sample on `devices` GPUs in a pipeline.
struct PublishedVocabularyLog {
  std::string system;
  int64_t tokens = 0, vocabulary = 0;
  int64_t last_blocks = 0;  // of the model's, on the last GPU
  double step_ms = 0;
  // [GPU] A micro-batch's passes of the chain; the last ones with the head where it is whole.
  std::vector<double> forward_us, backward_us;
  std::vector<double> output_us;  // both passes of a part of the head; empty: it is whole
  std::string tag;
};

struct VocabularyPaper {
  std::string paper;
  std::vector<PublishedVocabularyCell> cells;  // without those that did not fit
  std::string logs_source;
  PublishedVocabularyRun logs_run;  // the GPUs and the model of all logs; no more
  std::vector<PublishedVocabularyLog> logs;
};

// The error names file, run, row and key.
absl::StatusOr<VocabularyPaper> ParseVocabularyPaper(absl::string_view text,
                                                     absl::string_view what);
absl::StatusOr<VocabularyPaper> PublishedVocabulary();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_VOCABULARY_H_
