// 20,000 damaged inputs from one seed: none may crash, and among unpacked ones nearly all must be
// refused.
#include <cstddef>
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "models/data/r_serialization.h"
#include "models/data/r_test_writer.h"
#include "tools/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace pipelab {
namespace {

// Up to eight changes: a bit, a byte, a word of a telling value, a cut, a repeat.
std::string Mutate(std::string bytes, uint64_t round) {
  const CounterRng rng(20240501, round);
  uint64_t draw = 0;
  const auto below = [&](uint64_t n) { return rng.Below(draw++, n); };
  const uint64_t changes = 1 + below(8);
  for (uint64_t i = 0; i < changes && bytes.size() > 8; ++i) {
    const size_t at = below(bytes.size() - 4);
    constexpr uint32_t kTelling[] = {0,    0xFF,   0xFFFFFFFF, 0x7FFFFFFF, 0x80000000,
                                     0xFE, 0x2000, 19,         238};
    switch (below(5)) {
      case 0:
        bytes[at] ^= static_cast<char>(1u << below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.replace(at & ~size_t{3}, 4, RWriter().Word(kTelling[below(9)]).bytes());
        break;
      case 3:
        bytes.resize(bytes.size() - below(bytes.size() / 4 + 1));
        break;
      default:
        bytes.insert(at, bytes.substr(at, below(64)));
    }
  }
  return bytes;
}

TEST(RSerializationFuzz, TwentyThousandMutations) {
  const std::string frame = SampleFrame();
  RWriter index;
  index.Begin(3).List(1, RWriter::kHasAttributes).List(1, RWriter::kHasAttributes);
  index.Integers({0, 40}).Cell("names").Strings({"v"}).Null();
  index.Item(kPairListCode, RWriter::kHasTag).Reference(1).Strings({"variables"}).Null();
  RWriter data;
  data.Bytes("RDX3\n").Begin(3).Cell("x").Integers({1, 2}).Cell("y").Strings({"s"}).Null();
  int accepted = 0;
  for (uint64_t round = 0; round < 20000; ++round) {
    std::string input;
    switch (round % 4) {
      case 0:
        input = std::string(1, '\0') + Mutate(frame, round);
        break;
      case 1:
        input = std::string(1, '\1') + Mutate(data.bytes(), round);
        break;
      case 2:
        input = std::string(1, '\1') + Mutate(ZlibOf(data.bytes()), round);
        break;
      default:
        input = std::string(1, '\2') + Mutate(index.bytes(), round);
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    if (round % 4 == 0) accepted += ReadRSerialized(input.substr(1), "f").ok();
  }
  // Some changes fall in numbers and letters; were all refused, nothing was tested behind the
  // header.
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 4000);
}

}  // namespace
}  // namespace pipelab
