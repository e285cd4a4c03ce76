// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/data/theorem_graph.h"
#include "models/data/wordnet_graph.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(TextGraphFuzz, TwentyThousandMutations) {
  const std::string book =
      "$(\n#*#*\n A part\n#*#*\n$)\n wp $f wff p $.\nax $a |- p $.\nt $p |- p -> p $= ( ax ) AB "
      "$.\n";
  const std::string synsets =
      "10 03 n 02 dog 0 hound 1 002 @ 50 n 0000 + 10 n 0101 | a dog\n50 05 n 01 animal 0 000 | x\n";
  ASSERT_TRUE(ParseMetamath(book, "f").ok());
  ASSERT_TRUE(ParseWordNet({synsets, "", "", ""}).ok());
  RunMutations({book, synsets}, 20000);
}

}  // namespace
}  // namespace pipelab
