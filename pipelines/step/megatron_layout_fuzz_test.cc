// 20,000 damaged inputs from one seed: none may crash, and what is read reads back.
#include "gtest/gtest.h"
#include "pipelines/step/megatron_layout.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(MegatronLayoutFuzz, TwentyThousandMutations) {
  for (const char* layout : {"Et*3|(tt|)*29,m|L", "E|(t|)*3,m|m||L", "Et*2|||(t*4|tt|)*6t*4L"}) {
    ASSERT_TRUE(ParseMegatronLayout(layout).ok()) << layout;
  }
  RunMutations({"Et*3|(tt|)*29,m|L", "E|(t|)*3,m|m||L", "Et*2|||(t*4|tt|)*6t*4L"}, 20000);
}

}  // namespace
}  // namespace pipelab
