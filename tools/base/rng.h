// Counter-based random numbers, keyed by name: Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
//
//   CounterRng rng(/*seed=*/1, "init/block3/mlp/w");
//   float w = 0.02f * rng.Normal(i);     // the i-th number, whoever asks and in whatever order
//
// Nothing is drawn in sequence, so any partition and any schedule sees the same weights, data and
// dropout.
#ifndef PIPELAB_TOOLS_BASE_RNG_H_
#define PIPELAB_TOOLS_BASE_RNG_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace pipelab {

// FNV-1a: a stable 64-bit hash of a name, the same on every machine and version.
uint64_t StableHash(absl::string_view name);

// One Philox4x32-10 block: 128 random bits from a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

class CounterRng {
 public:
  CounterRng(uint64_t seed, absl::string_view name) : CounterRng(seed, StableHash(name)) {}
  // `stream` is a hash or any number that tells streams of one seed apart.
  CounterRng(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  uint32_t Bits(uint64_t index) const;               // uniform 32 bits
  float Uniform(uint64_t index) const;               // [0, 1), multiples of 2^-24
  float Normal(uint64_t index) const;                // mean 0, variance 1 (Box-Muller)
  uint64_t Below(uint64_t index, uint64_t n) const;  // [0, n), n >= 1

  uint64_t seed() const { return seed_; }
  uint64_t stream() const { return stream_; }

 private:
  uint64_t seed_;
  uint64_t stream_;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_RNG_H_
