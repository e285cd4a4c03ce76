// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/data/csv.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(CsvFuzz, TwentyThousandMutations) {
  const std::string sample = "rooms,\"price, \"\"net\"\"\"\r\n1,-2.5e3\n\n\"3\" , 4\n";
  ASSERT_TRUE(ParseCsv(sample, "f").ok());
  RunMutations({sample}, 20000);
}

}  // namespace
}  // namespace pipelab
