// 20,000 damaged inputs from one seed: none may crash.
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

constexpr char kSample[] =
    "start step=0 stages=1 micro_batches=2\ncount step=0 stage=0 micro_batch=0 peer=1\n"
    "count step=0 stage=0 micro_batch=1 peer=2\nlose step=0 stage=0 micro_batch=1 peer=2\n"
    "count step=0 stage=0 micro_batch=1 peer=1\ncommit step=0 stage=0 shares=1:0,1\nstep step=0\n";

TEST(SwarmLogFuzz, TwentyThousandMutations) { RunMutations({kSample}, 20000); }

}  // namespace
}  // namespace pipelab
