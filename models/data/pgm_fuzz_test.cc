// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/data/pgm.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(PgmFuzz, TwentyThousandMutations) {
  const std::string raw = "P5\n# c\n4 3\n255\nabcdefghijkl", plain = "P2 3 2 9\n1 2 3\n4 5 9\n";
  ASSERT_TRUE(ParsePgm(raw, "f").ok());
  ASSERT_TRUE(ParsePgm(plain, "f").ok());
  RunMutations({raw, plain}, 20000);
}

}  // namespace
}  // namespace pipelab
