// A sentence as mining reads it: lower-case letters and digits, the stems of its words, and what is
// the same in all languages.
//
//   PIPELAB_ASSIGN_OR_RETURN(const Sentence s, ReadSentence("The printers, 2 of them"));
//   s.text;      // "the printers 2 of them"
//   s.stems;     // "the", "printe", "2", "of", "them"
//   s.names;     // "2"
//   s.marks;     // ","
//
// Whatever is no letter and no digit parts words. A stem is a word's first six characters, which
// puts most forms of a word together in languages that inflect at the end. Case is taken from
// Latin, Greek and Cyrillic letters. All quotation marks count as one mark, all dashes as another,
// and an ellipsis as three full stops.
#ifndef PIPELAB_MODELS_MINING_SENTENCE_H_
#define PIPELAB_MODELS_MINING_SENTENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct Sentence {
  std::u32string text;  // words with one space between
  std::vector<std::string> stems;
  std::vector<std::string> names;  // stems of words with a digit or an inner capital, sorted
  std::u32string marks;            // neither letters, digits nor blanks, sorted

  bool operator==(const Sentence& other) const { return text == other.text; }
};

// InvalidArgument for what is not UTF-8.
absl::StatusOr<Sentence> ReadSentence(absl::string_view text);

// Reads all of them; InvalidArgument with the place, "sentence 3 of LIST: ...", for the first that
// is not UTF-8.
absl::StatusOr<std::vector<Sentence>> ReadSentences(const std::vector<std::string>& texts,
                                                    absl::string_view list);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_SENTENCE_H_
