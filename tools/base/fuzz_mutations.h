// Damage for the seeded fuzz tests, and the entry point that they share with libFuzzer.
//
//   RunMutations({sample1, sample2}, /*rounds=*/20000);      // each through LLVMFuzzerTestOneInput
//
// In NAME_fuzz_test.cc it first runs the kept inputs of NAME_fuzz.txt beside it, one a line,
// escaped as in C. `.ci/long fuzz` adds those that reach new code (tools/dev/fuzz_corpus.py).
#ifndef PIPELAB_TOOLS_BASE_FUZZ_MUTATIONS_H_
#define PIPELAB_TOOLS_BASE_FUZZ_MUTATIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
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

// The kept inputs, then the samples in turn, each as it is and then damaged. `test` is the caller's
// file.
inline void RunMutations(const std::vector<std::string>& samples, uint64_t rounds,
                         absl::string_view test = __builtin_FILE()) {
  const auto run = [](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  };
  absl::ConsumeSuffix(&test, "_test.cc");
  std::ifstream kept(absl::StrCat(test, ".txt"));
  EXPECT_TRUE(kept.is_open()) << test << ".txt is missing";
  for (std::string line, input; std::getline(kept, line);) {
    if (absl::CUnescape(line, &input)) run(input);
  }
  run("");
  for (const std::string& sample : samples) {
    run(sample);
    // libFuzzer begins with the samples, too (.ci/long).
    if (const char* folder = std::getenv("PIPELAB_FUZZ_SAMPLES"); folder != nullptr) {
      const size_t hash = std::hash<std::string>()(sample);
      const std::string name = absl::StrReplaceAll(test, {{"./", ""}, {"/", "-"}});
      std::ofstream(absl::StrCat(folder, "/", name, "-", hash), std::ios::binary) << sample;
    }
  }
  for (uint64_t round = 0; round < rounds; ++round) {
    run(Mutate(samples[round % samples.size()], round));
  }
}

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_FUZZ_MUTATIONS_H_
