// Writes PNG pictures and small emoji fonts for tests.
#ifndef PIPELAB_MODELS_DATA_EMOJI_TEST_WRITER_H_
#define PIPELAB_MODELS_DATA_EMOJI_TEST_WRITER_H_

#include <png.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pipelab {

// RGBA pixels of a picture of this width.
inline std::string PngOf(const std::vector<uint8_t>& rgba, uint32_t width) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = static_cast<uint32_t>(rgba.size()) / (4 * width);
  image.format = PNG_FORMAT_RGBA;
  png_alloc_size_t size = 0;
  png_image_write_to_memory(&image, nullptr, &size, 0, rgba.data(), 0, nullptr);
  std::string out(size, '\0');
  png_image_write_to_memory(&image, &out[0], &size, 0, rgba.data(), 0, nullptr);
  out.resize(size);
  return out;
}

// A picture of one colour.
inline std::string PlainPng(uint8_t r, uint8_t g, uint8_t b, uint8_t alpha, uint32_t width,
                            uint32_t height) {
  std::vector<uint8_t> rgba;
  for (uint32_t i = 0; i < width * height; ++i) rgba.insert(rgba.end(), {r, g, b, alpha});
  return PngOf(rgba, width);
}

inline std::string Big(uint32_t value, int bytes) {
  std::string out;
  for (int b = bytes - 1; b >= 0; --b) out.push_back(static_cast<char>(value >> (8 * b)));
  return out;
}

// A font in which the characters from `first` on have these pictures, from glyph 5 on.
inline std::string FontOf(uint32_t first, const std::vector<std::string>& pngs) {
  const uint32_t n = static_cast<uint32_t>(pngs.size());
  const std::string format4 = Big(4, 2) + Big(8, 2) + Big(0, 4);  // passed over
  const std::string cmap = Big(0, 2) + Big(2, 2) + Big(3, 2) + Big(1, 2) + Big(20, 4) + Big(3, 2) +
                           Big(10, 2) + Big(28, 4) + format4 + Big(12, 2) + Big(0, 2) + Big(28, 4) +
                           Big(0, 4) + Big(1, 4) + Big(first, 4) + Big(first + n - 1, 4) +
                           Big(5, 4);
  std::string cbdt = Big(3, 2) + Big(0, 2), offsets = Big(0, 4);
  for (const std::string& png : pngs) {
    cbdt += std::string(5, '\1') + Big(static_cast<uint32_t>(png.size()), 4) + png;
    offsets += Big(static_cast<uint32_t>(cbdt.size() - 4), 4);
  }
  const std::string strike = Big(56, 4) + Big(0, 4) + Big(1, 4) + Big(0, 4) +
                             std::string(24, '\0') + Big(5, 2) + Big(4 + n, 2) +
                             std::string(4, '\0');
  const std::string cblc = Big(3, 2) + Big(0, 2) + Big(1, 4) + strike + Big(5, 2) + Big(4 + n, 2) +
                           Big(8, 4) + Big(1, 2) + Big(17, 2) + Big(4, 4) + offsets;
  const uint32_t start = 12 + 3 * 16;
  std::string font = Big(0x00010000, 4) + Big(3, 2) + std::string(6, '\0'), tables;
  const auto add = [&](const char* tag, const std::string& table) {
    font += tag + Big(0, 4) + Big(start + static_cast<uint32_t>(tables.size()), 4) +
            Big(static_cast<uint32_t>(table.size()), 4);
    tables += table;
  };
  add("CBDT", cbdt);
  add("CBLC", cblc);
  add("cmap", cmap);
  return font + tables;
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EMOJI_TEST_WRITER_H_
