#include "tools/base/printable.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pipelab {
namespace {

// The bytes of the first character, where it is one to be printed; else 0.
size_t PrintableBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  constexpr uint32_t kLeast[] = {0, 0, 0xa0, 0x800, 0x10000};  // C1 controls are below 0xa0.
  if (byte(0) < 0xc0 || byte(0) >= 0xf8 || text.size() < bytes) return 0;
  uint32_t character = byte(0) & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3fu);
  }
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  const bool turns = (character >= 0x2028 && character <= 0x202e) ||  // and ends of lines
                     (character >= 0x2066 && character <= 0x2069) || character == 0x200e ||
                     character == 0x200f || character == 0x61c;
  return character < kLeast[bytes] || character > 0x10ffff || surrogate || turns ? 0 : bytes;
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = PrintableBytes(text);
    if (bytes > 0) {
      out.append(text.data(), bytes);
    } else if (text[0] == '\n') {
      out.append("\\n");
    } else {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    }
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return out;
}

std::string WithoutMiddle(absl::string_view text) {
  constexpr size_t kEnd = 2048;
  if (text.size() <= 2 * kEnd) return std::string(text);
  const auto within_character = [&](size_t at) { return (text[at] & 0xc0) == 0x80; };
  size_t first = kEnd, last = text.size() - kEnd;
  for (int i = 0; i < 3 && within_character(first); ++i) --first;
  for (int i = 0; i < 3 && within_character(last); ++i) ++last;
  return absl::StrCat(text.substr(0, first), " ... ", text.substr(last));
}

}  // namespace pipelab
