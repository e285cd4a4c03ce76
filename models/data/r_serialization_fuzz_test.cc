// 20,000 damaged inputs from one seed: none may crash, and among unpacked ones nearly all must be
// refused.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "models/data/r_serialization.h"
#include "models/data/r_test_writer.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

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
