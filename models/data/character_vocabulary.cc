#include "models/data/character_vocabulary.h"

#include <utility>

#include "glog/logging.h"
#include "models/data/utf8.h"

namespace pipelab {

std::vector<uint32_t> CharactersOf(absl::string_view text) {
  auto characters = DecodeUtf8(text);
  if (characters.ok()) return *std::move(characters);
  return std::vector<uint32_t>(text.size(), kNoCharacter);
}

void CharacterVocabulary::Counter::Add(absl::string_view text) {
  for (const uint32_t c : CharactersOf(text)) ++counts_[c];
}

CharacterVocabulary CharacterVocabulary::Counter::Vocabulary(int32_t first, int32_t unknown,
                                                             int64_t least_count) const {
  CharacterVocabulary v(first, unknown);
  for (const auto& [character, count] : counts_) {
    if (count < least_count || character == kNoCharacter) continue;
    v.token_of_[character] = static_cast<int32_t>(v.end());
    v.characters_.push_back(character);
  }
  return v;
}

std::vector<int32_t> CharacterVocabulary::Encode(absl::string_view text) const {
  std::vector<int32_t> tokens;
  for (const uint32_t c : CharactersOf(text)) {
    const auto it = token_of_.find(c);
    tokens.push_back(it == token_of_.end() ? unknown_ : it->second);
  }
  return tokens;
}

std::string CharacterVocabulary::TextOf(int32_t token) const {
  CHECK(token >= first_ && token < end()) << token;
  return EncodeUtf8(characters_[token - first_]);
}

}  // namespace pipelab
