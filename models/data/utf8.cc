#include "models/data/utf8.h"

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace pipelab {
namespace {

bool IsCharacter(uint32_t c) { return c < 0xD800 || (c > 0xDFFF && c <= 0x10FFFF); }

// Bytes of the sequence that `first` starts; 0 when it starts none.
int LengthOf(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  if (first >= 0xF0 && first < 0xF5) return 4;
  return 0;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> DecodeUtf8(absl::string_view text) {
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  std::vector<uint32_t> characters;
  for (size_t i = 0; i < text.size();) {
    const uint8_t first = static_cast<uint8_t>(text[i]);
    const int length = LengthOf(first);
    uint32_t c = length <= 1 ? first : first & (0x7Fu >> length);
    bool good = length > 0 && i + length <= text.size();
    for (int k = 1; k < length && good; ++k) {
      const uint8_t next = static_cast<uint8_t>(text[i + k]);
      good = (next & 0xC0) == 0x80;
      c = c << 6 | (next & 0x3Fu);
    }
    if (!good || c < kSmallest[length] || !IsCharacter(c)) {
      return absl::InvalidArgumentError(absl::StrFormat("not UTF-8: byte 0x%02x at %d", first, i));
    }
    characters.push_back(c);
    i += length;
  }
  return characters;
}

std::string EncodeUtf8(uint32_t c) {
  if (!IsCharacter(c)) c = 0xFFFD;
  std::string out;
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
    return out;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(kLead[more] | c >> (6 * more)));
  for (int k = more - 1; k >= 0; --k)
    out.push_back(static_cast<char>(0x80 | (c >> (6 * k) & 0x3F)));
  return out;
}

}  // namespace pipelab
