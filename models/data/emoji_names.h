// Which emoji there are, in which groups, and what they are called in many languages.
//
//   PIPELAB_ASSIGN_OR_RETURN(auto emoji, ParseEmojiTest(text, "emoji-test.txt"));   // Unicode's
//   PIPELAB_ASSIGN_OR_RETURN(auto names, ParseAnnotations(xml, "de.xml"));          // CLDR's
//   names.at("😀")                                           // "grinsendes Gesicht"
//
// Errors are one line with file and byte.
#ifndef PIPELAB_MODELS_DATA_EMOJI_NAMES_H_
#define PIPELAB_MODELS_DATA_EMOJI_NAMES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct EmojiEntry {
  std::vector<uint32_t> characters;  // without U+FE0F, which only asks for colour
  std::string group;                 // "Smileys & Emotion"
  std::string name;                  // in English
};

// The fully-qualified entries of emoji-test.txt (UTS #51), in its order: lines
// "1F600 ; fully-qualified # 😀 E1.0 grinning face" below "# group: Smileys & Emotion".
absl::StatusOr<std::vector<EmojiEntry>> ParseEmojiTest(absl::string_view text,
                                                       absl::string_view file);

// Short names of a file of CLDR annotations (UTS #35, part 2): the elements
// <annotation cp="😀" type="tts">grinning face</annotation>, by cp. The first counts.
absl::StatusOr<std::map<std::string, std::string>> ParseAnnotations(absl::string_view xml,
                                                                    absl::string_view file);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EMOJI_NAMES_H_
