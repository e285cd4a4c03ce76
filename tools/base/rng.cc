#include "tools/base/rng.h"

#include <cmath>

namespace pipelab {

uint64_t StableHash(absl::string_view name) {
  uint64_t h = 14695981039346656037ull;
  for (char c : name) {
    h ^= static_cast<unsigned char>(c);
    h *= 1099511628211ull;
  }
  return h;
}

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

// The key is the seed; the counter is (index / 4, stream), so streams never overlap.
uint32_t CounterRng::Bits(uint64_t index) const {
  const uint64_t block = index / 4;
  return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                    {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)})[index % 4];
}

float CounterRng::Uniform(uint64_t index) const {
  return static_cast<float>(Bits(index) >> 8) * 0x1.0p-24f;
}

float CounterRng::Normal(uint64_t index) const {
  // Two 32-bit draws a number; (bits + 0.5) keeps the logarithm finite.
  const double u = (Bits(2 * index) + 0.5) * 0x1.0p-32;
  const double v = (Bits(2 * index + 1) + 0.5) * 0x1.0p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * M_PI * v));
}

uint64_t CounterRng::Below(uint64_t index, uint64_t n) const {
  const uint64_t bits = (uint64_t{Bits(2 * index)} << 32) | Bits(2 * index + 1);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

}  // namespace pipelab
