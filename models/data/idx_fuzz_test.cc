// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/data/idx.h"
#include "models/data/r_test_writer.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(IdxFuzz, TwentyThousandMutations) {
  const std::string sample =
      std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x04", 16) + "abcdefghijklmnopqrstuvwx";
  ASSERT_TRUE(ParseIdx(sample, "f").ok());
  RunMutations({sample, ZlibOf(sample)}, 20000);
}

}  // namespace
}  // namespace pipelab
