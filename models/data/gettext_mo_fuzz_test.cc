// 20,000 damaged inputs from one seed: none may crash.
#include "gtest/gtest.h"
#include "models/data/gettext_mo.h"
#include "models/data/mo_test_writer.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(MoFuzz, TwentyThousandMutations) {
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"", "header"}, {"Germany", "Deutschland"}, {"c\4Thai", "Thai"}, {"Wales", "Wales"}};
  ASSERT_TRUE(ParseMo(MoFile(pairs), "f").ok());
  RunMutations({MoFile(pairs), MoFile(pairs, /*big=*/true)}, 20000);
}

}  // namespace
}  // namespace pipelab
