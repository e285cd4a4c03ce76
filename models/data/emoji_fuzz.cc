// Entry point for libFuzzer (how to run it: tools/build_defs/package.bzl), and for the seeded test
// beside it. The first byte picks the parser.
#include <cstddef>
#include <cstdint>
#include <string>

#include "models/data/emoji_font.h"
#include "models/data/emoji_names.h"
#include "models/data/png.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr int64_t kPixels = 1 << 12;  // a find should be a fault, not a large picture
  switch (data[0] % 4) {
    case 0: {
      const auto font = pipelab::EmojiFont::Parse(std::string(bytes), "fuzz");
      if (!font.ok()) break;
      for (const uint32_t character : {0x41u, 0x1F5FFu, 0x1F600u, 0x1F601u, 0x1F700u}) {
        const auto png = font->Png(character);
        if (!png.ok()) continue;
        const auto picture = pipelab::DecodePng(*png, "fuzz", kPixels);
        if (picture.ok()) (void)pipelab::ScaleOnWhite(*picture, 8);
      }
      break;
    }
    case 1:
      (void)pipelab::DecodePng(bytes, "fuzz", kPixels);
      break;
    case 2:
      (void)pipelab::ParseEmojiTest(bytes, "fuzz");
      break;
    default:
      (void)pipelab::ParseAnnotations(bytes, "fuzz");
  }
  return 0;
}
