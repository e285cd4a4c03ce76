// Damage for the seeded fuzz tests, and the entry point that they share with libFuzzer.
//
//   RunMutations({sample1, sample2}, /*rounds=*/20000);      // each through LLVMFuzzerTestOneInput
#ifndef PIPELAB_TOOLS_BASE_FUZZ_MUTATIONS_H_
#define PIPELAB_TOOLS_BASE_FUZZ_MUTATIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace pipelab {

// Up to eight changes: a bit, a byte, a telling word (in either byte order), a cut, a repeat.
inline std::string Mutate(std::string bytes, uint64_t round) {
  const CounterRng rng(20240501, round);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return rng.Below(draw++, n); };
  const uint64_t changes = 1 + below(8);
  for (uint64_t i = 0; i < changes && bytes.size() > 8; ++i) {
    const size_t at = below(bytes.size() - 4);
    constexpr uint32_t kTelling[] = {0,          1,          0xFF,       0xFFFF, 0x10000,
                                     0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x2000, 0x00FFFFFF};
    switch (below(5)) {
      case 0:
        bytes[at] ^= static_cast<char>(1u << below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2: {
        const uint32_t word = kTelling[below(10)];
        const bool big = below(2) == 0;
        for (int b = 0; b < 4; ++b) {
          bytes[(at & ~size_t{3}) + b] = static_cast<char>(word >> (big ? 24 - 8 * b : 8 * b));
        }
        break;
      }
      case 3:
        bytes.resize(bytes.size() - below(bytes.size() / 4 + 1));
        break;
      default:
        bytes.insert(at, bytes.substr(at, below(64)));
    }
  }
  return bytes;
}

// The samples in turn, each as it is and then damaged.
inline void RunMutations(const std::vector<std::string>& samples, uint64_t rounds) {
  const auto run = [](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  };
  run("");
  for (const std::string& sample : samples) run(sample);
  for (uint64_t round = 0; round < rounds; ++round) {
    run(Mutate(samples[round % samples.size()], round));
  }
}

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_FUZZ_MUTATIONS_H_
