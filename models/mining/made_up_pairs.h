// Pairs of sentences of two made-up languages, for tests: each word has one translation, some words
// are common, and each third pair has a number that both sides share.
//
//   const std::vector<TextPair> pairs = MadeUpPairs(600, {/*letters=*/6, /*words=*/12, 400});
#ifndef PIPELAB_MODELS_MINING_MADE_UP_PAIRS_H_
#define PIPELAB_MODELS_MINING_MADE_UP_PAIRS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/data/catalogues.h"
#include "tools/base/rng.h"

namespace pipelab {

struct MadeUpLanguages {
  int letters, words, vocabulary;  // of a word, of a sentence, of a language
};

inline std::string MadeUpWord(absl::string_view language, uint64_t word, int letters) {
  std::string text;
  for (int i = 0; i < letters; ++i) {
    text.push_back("abcdefghijklmnopqrstuvwxyz"[CounterRng(word, language).Below(i, 26)]);
  }
  return text;
}

// Pairs from number `first` of a list without an end.
inline std::vector<TextPair> MadeUpPairs(int count, const MadeUpLanguages& of, int first = 0) {
  std::vector<TextPair> pairs;
  for (int i = first; i < first + count; ++i) {
    TextPair pair;
    for (int w = 0; w < of.words; ++w) {
      const float u = CounterRng(i, "sentence").Uniform(w);
      const auto word = static_cast<uint64_t>(static_cast<float>(of.vocabulary) * u * u);
      absl::StrAppend(&pair.source, w > 0 ? " " : "", MadeUpWord("one", word, of.letters));
      absl::StrAppend(&pair.target, w > 0 ? " " : "", MadeUpWord("two", word, of.letters));
    }
    if (i % 3 == 0) {
      absl::StrAppend(&pair.source, " ", 7919 + i * 31);
      absl::StrAppend(&pair.target, " ", 7919 + i * 31);
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_MINING_MADE_UP_PAIRS_H_
