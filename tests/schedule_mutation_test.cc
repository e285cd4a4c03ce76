// The validator against a brute-force judge: each schedule of the catalogue, damaged at random a
// thousand times (dropped, doubled, swapped and moved actions), is accepted only when it really
// runs, and then it also lowers.
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "pipelines/ir/brute_force.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kMutations = 1000;

struct Count {
  int accepted = 0, refused = 0;
};

void Damage(const Schedule& whole, const std::string& name, Count* count) {
  ASSERT_TRUE(BruteForceValid(whole)) << name;
  const CounterRng rng(7, "mutations of " + name);
  uint64_t n = 0;
  for (int done = 0; done < kMutations;) {
    Schedule s = whole;
    if (!Mutate(rng, &n, &s)) continue;
    ++done;
    const bool valid = BruteForceValid(s);
    const absl::Status status = Validate(s);
    ASSERT_EQ(status.ok(), valid) << name << ": " << status;
    ASSERT_EQ(Lower(s, {}).ok(), valid) << name;
    if (!valid) {
      ASSERT_EQ(status.message().find('\n'), absl::string_view::npos) << status;
      ASSERT_NE(status.message().find("device"), absl::string_view::npos) << status;
    }
    ++(valid ? count->accepted : count->refused);
  }
}

TEST(ScheduleMutation, AcceptedOnlyWhenReallyValid) {
  Count count;
  for (const Scheme& scheme : Catalog()) {
    int served = 0;
    for (const auto& [devices, micro_batches] : {std::pair(2, 4), std::pair(4, 8)}) {
      for (bool recompute : {false, true}) {
        SchemeParams params{devices, micro_batches};
        params.recompute = recompute;
        const absl::StatusOr<Schedule> s = MakeSchedule(scheme.name, params);
        if (!s.ok()) continue;
        ++served;
        Damage(*s, std::string(scheme.name), &count);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(served, 0) << scheme.name << " serves none of the sizes: give it one";
  }
  // Both verdicts are exercised: swaps of independent actions stay valid.
  EXPECT_GT(count.accepted, 1000);
  EXPECT_GT(count.refused, 5000);
}

}  // namespace
}  // namespace pipelab
