// Characters as tokens.
//
//   CharacterVocabulary::Counter counter;
//   for (const std::string& text : texts) counter.Add(text);
//   const CharacterVocabulary v = counter.Vocabulary(/*first=*/2, /*unknown=*/1,
//   /*least_count=*/5); v.Encode("abc");      // numbers from `first` on, by code point, or
//   `unknown`
#ifndef PIPELAB_MODELS_DATA_CHARACTER_VOCABULARY_H_
#define PIPELAB_MODELS_DATA_CHARACTER_VOCABULARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// UTF-8 as code points; each byte of what is not UTF-8 is kNoCharacter.
constexpr uint32_t kNoCharacter = 0xFFFFFFFF;
std::vector<uint32_t> CharactersOf(absl::string_view text);

class CharacterVocabulary {
 public:
  class Counter {
   public:
    void Add(absl::string_view text);
    // The characters that were seen at least `least_count` times.
    CharacterVocabulary Vocabulary(int32_t first, int32_t unknown, int64_t least_count) const;

   private:
    std::map<uint32_t, int64_t> counts_;
  };

  int32_t first() const { return first_; }
  int64_t end() const { return first_ + static_cast<int64_t>(characters_.size()); }
  std::vector<int32_t> Encode(absl::string_view text) const;
  // UTF-8 of a token in [first(), end()) (CHECKed).
  std::string TextOf(int32_t token) const;

 private:
  CharacterVocabulary(int32_t first, int32_t unknown) : first_(first), unknown_(unknown) {}

  int32_t first_, unknown_;
  std::vector<uint32_t> characters_;  // token - first_ -> character
  absl::flat_hash_map<uint32_t, int32_t> token_of_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_CHARACTER_VOCABULARY_H_
