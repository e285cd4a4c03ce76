// Says slowly and plainly whether a schedule is sound, and damages schedules at random: the judge
// of the validator in tests.
//
//   const CounterRng rng(3, "mutations");
//   uint64_t n = 0;
//   if (Mutate(rng, &n, &schedule)) EXPECT_EQ(Validate(schedule).ok(), BruteForceValid(schedule));
#ifndef PIPELAB_TESTS_SUPPORT_BRUTE_FORCE_H_
#define PIPELAB_TESTS_SUPPORT_BRUTE_FORCE_H_

#include <cstdint>

#include "pipelines/ir/schedule.h"
#include "tools/base/rng.h"

namespace pipelab {

// Counts actions in plain sets, then tries the heads of all devices again and again; it has its own
// words for what an action needs. Needs a placement and numbers of micro-batches that make sense
// (Validate checks them first), and actions in range.
bool BruteForceValid(const Schedule& schedule);

// Drops an action, doubles one, swaps two of a device, moves one to a place of another device (or
// of its own), or changes its weight version where it has one. False, and nothing done, where the
// device chosen is empty. Advances *n.
bool Mutate(const CounterRng& rng, uint64_t* n, Schedule* schedule);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_BRUTE_FORCE_H_
