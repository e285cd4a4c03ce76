// The text that a language-model experiment trains on: the novels, or generated text that says so.
//
//   PIPELAB_ASSIGN_OR_RETURN(ChosenText text,
//                            ChooseText(/*synthetic=*/false, /*context=*/128, seed));
//   text.data.train;
//   text.description;      // "Jane Austen's six novels (3.7 MiB of text, 82 bytes)"
#ifndef PIPELAB_EXPERIMENTS_TRAINING_TEXT_CHOICE_H_
#define PIPELAB_EXPERIMENTS_TRAINING_TEXT_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/data/text_batches.h"

namespace pipelab {

struct ChosenText {
  TextData data;
  std::string description;         // names generated text "synthetic"
  std::vector<std::string> notes;  // why the novels are not there, for the report
};

// Fetches the novels, from the cache or through apt. Where apt, the network or the package is
// missing (Unavailable), generated text stands in and a note says why; a corrupt download is an
// error (DataLoss).
absl::StatusOr<ChosenText> ChooseText(bool synthetic, int64_t context, uint64_t seed);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_TEXT_CHOICE_H_
