// 20,000 damaged inputs from one seed: none may crash.
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

constexpr char kLogSample[] =
    "start step=0 stages=1 micro_batches=2 epoch=1\njoin peer=1 epoch=1\njoin peer=2 epoch=1\n"
    "count step=0 stage=0 micro_batch=0 peer=1 epoch=1\n"
    "count step=0 stage=0 micro_batch=1 peer=2 epoch=1\ndrop peer=2 epoch=1\n"
    "lose step=0 stage=0 micro_batch=1 peer=2 epoch=1\n"
    "count step=0 stage=0 micro_batch=1 peer=1 epoch=1\n"
    "commit step=0 stage=0 shares=1:0,1 epoch=1\nstep step=0 epoch=1\nsave step=1 epoch=1\n"
    "start step=1 stages=1 micro_batches=2 epoch=2\nstep step=1 epoch=1\n";

TEST(SwarmLogFuzz, TwentyThousandMutations) { RunMutations({kLogSample}, 20000); }

}  // namespace
}  // namespace pipelab
