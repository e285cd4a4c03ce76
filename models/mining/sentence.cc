#include "models/mining/sentence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/data/utf8.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kStem = 6;

bool IsIn(uint32_t c, uint32_t first, uint32_t last) { return c >= first && c <= last; }

// Lower case in the blocks that hold the letters of European languages (Unicode's character
// database).
uint32_t LowerCase(uint32_t c) {
  if (IsIn(c, 'A', 'Z') || (IsIn(c, 0xC0, 0xDE) && c != 0xD7)) return c + 32;
  if (IsIn(c, 0x139, 0x148) || IsIn(c, 0x179, 0x17E)) return c + c % 2;  // capitals are odd
  if (IsIn(c, 0x100, 0x177) || IsIn(c, 0x218, 0x21B)) return c | 1;      // capitals are even
  if (IsIn(c, 0x391, 0x3A9) || IsIn(c, 0x410, 0x42F)) return c + 32;     // Greek, Cyrillic
  if (IsIn(c, 0x400, 0x40F)) return c + 80;
  return c;
}

// Marks beyond ASCII that stand between words: Latin-1's signs, general punctuation to arrows.
bool IsMark(uint32_t c) {
  if (c < 0x80) return !(IsIn(c, '0', '9') || IsIn(c, 'A', 'Z') || IsIn(c, 'a', 'z'));
  return IsIn(c, 0x80, 0xBF) || c == 0xD7 || c == 0xF7 || IsIn(c, 0x2000, 0x2BFF) ||
         IsIn(c, 0x3000, 0x303F) || c == 0xFEFF;
}

// Spaces, controls and what is not seen, of the marks.
bool IsBlank(uint32_t c) {
  return c <= ' ' || IsIn(c, 0x7F, 0xA0) || c == 0xAD || IsIn(c, 0x2000, 0x200F) ||
         IsIn(c, 0x2028, 0x202F) || c == 0x3000 || c == 0xFEFF;
}

// The mark as any language may write it.
std::u32string PlainMark(uint32_t c) {
  if (c == '\'' || c == '`' || c == 0xAB || c == 0xBB || c == 0xB4 || IsIn(c, 0x2018, 0x201F) ||
      IsIn(c, 0x2039, 0x203A) || IsIn(c, 0x300C, 0x300F)) {
    return U"\"";
  }
  if (IsIn(c, 0x2010, 0x2015)) return U"-";
  if (c == 0x2026) return U"...";
  return std::u32string(1, static_cast<char32_t>(c));
}

}  // namespace

absl::StatusOr<Sentence> ReadSentence(absl::string_view text) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<uint32_t> characters, DecodeUtf8(text));
  Sentence sentence;
  std::string stem;
  size_t length = 0;
  bool is_name = false;  // it has a digit, or a capital after its first letter
  const auto end_word = [&] {
    if (length > 0) {
      if (is_name) sentence.names.push_back(stem);
      sentence.stems.push_back(std::exchange(stem, ""));
    }
    length = 0;
    is_name = false;
  };
  for (const uint32_t c : characters) {
    if (IsMark(c)) {
      end_word();
      if (!IsBlank(c)) sentence.marks += PlainMark(c);
      continue;
    }
    if (length == 0 && !sentence.text.empty()) sentence.text.push_back(U' ');
    const uint32_t lower = LowerCase(c);
    sentence.text.push_back(static_cast<char32_t>(lower));
    is_name |= IsIn(c, '0', '9') || (length > 0 && lower != c);
    if (length++ < kStem) stem += EncodeUtf8(lower);
  }
  end_word();
  std::sort(sentence.names.begin(), sentence.names.end());
  std::sort(sentence.marks.begin(), sentence.marks.end());
  return sentence;
}

absl::StatusOr<std::vector<Sentence>> ReadSentences(const std::vector<std::string>& texts,
                                                    absl::string_view list) {
  std::vector<Sentence> sentences;
  for (const std::string& text : texts) {
    absl::StatusOr<Sentence> sentence = ReadSentence(text);
    if (!sentence.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("sentence ", sentences.size() + 1, " of ",
                                                     list, ": ", sentence.status().message()));
    }
    sentences.push_back(*std::move(sentence));
  }
  return sentences;
}

}  // namespace pipelab
