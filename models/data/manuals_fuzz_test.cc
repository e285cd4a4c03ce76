// 20,000 damaged inputs from one seed: none may crash.
#include <string>

#include "gtest/gtest.h"
#include "models/data/manuals.h"
#include "models/data/mining_pool.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(ManualsFuzz, TwentyThousandMutations) {
  const std::string page =
      "<?xml version=\"1.0\"?><page xmlns=\"http://projectmallard.org/1.0/\"><title>A &amp; "
      "b</title>"
      "<steps><item><p>Press <gui>Next</gui>\n<![CDATA[now]]> \xC3\xA9.</p></item></steps></page>";
  const std::string truth = "0 5\n1 0\n12 2147483647\n";
  ASSERT_EQ(ParseManualPage(page, "f")->size(), 2u);
  ASSERT_EQ(ParseMiningTruth(truth, "f")->size(), 3u);
  RunMutations({page, truth}, 20000);
}

}  // namespace
}  // namespace pipelab
