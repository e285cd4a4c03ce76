#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule_json.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "tests/support/brute_force.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

SchemeParams DecodeSizes(int devices, int passes, int groups, int chunks = 0) {
  SchemeParams params{devices, passes};
  params.group_size = groups;
  params.slices = chunks;
  return params;
}

TEST(Decode, Pictures) {
  EXPECT_EQ(Timeline(MakeOrDie("decode", DecodeSizes(3, 6, 3))), R"(
 0 1 2 3 4 5    |
   0 1 2 3 4 5  |
     0 1 2 3 4 5|
)");
  // Two groups on three stages: a gap in each round.
  EXPECT_EQ(Timeline(MakeOrDie("decode", DecodeSizes(3, 6, 2))), R"(
 0 1   2 3   4 5    |
   0 1   2 3   4 5  |
     0 1   2 3   4 5|
)");
  // Two groups, prompts in two chunks each (0 1 and 2 3), then a token of each in turn.
  EXPECT_EQ(Timeline(MakeOrDie("prefill_decode", DecodeSizes(3, 8, 2, 2))), R"(
 0 1 2 3 4   5 6   7    |
   0 1 2 3 4   5 6   7  |
     0 1 2 3 4   5 6   7|
)");
}

// Passes in turn: with as many groups as stages no stage waits; with fewer a round takes P.
TEST(Decode, ClosedForms) {
  for (int p : {1, 2, 3, 4, 8, 16}) {
    for (int groups : {1, 2, 3, p, 2 * p}) {
      for (int rounds : {1, 2, 5}) {
        const int m = groups * rounds;
        const UnitFigures f = Figures(MakeOrDie("decode", DecodeSizes(p, m, groups)));
        const int expected = groups >= p ? m + p - 1 : (rounds - 1) * p + groups + p - 1;
        ASSERT_EQ(f.makespan, expected) << p << " " << groups << " " << rounds;
        ASSERT_EQ(f.busy, m);
      }
    }
  }
}

// A message each way for each pass and stage, and for each token that a pass begins with.
TEST(Decode, Messages) {
  for (int p : {1, 2, 3, 5}) {
    for (int groups : {1, 2, 5}) {
      const int m = 4 * groups;
      for (const Schedule& s : {MakeOrDie("decode", DecodeSizes(p, m, groups)),
                                MakeOrDie("prefill_decode", DecodeSizes(p, m, groups, 2))}) {
        const auto tokens = std::count_if(s.carried.sources().begin(), s.carried.sources().end(),
                                          [](int32_t source) { return source >= 0; });
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
        EXPECT_EQ(CheckProgram(program), "") << s.name;
        const size_t expected = p == 1 ? 0 : (p - 1) * m + tokens;
        EXPECT_EQ(program.messages.size(), expected) << s.name << " " << p << " " << groups;
      }
    }
  }
}

// The validator and a judge that shares nothing with it agree on broken orders and sources.
TEST(Decode, MutationsAgainstBruteForce) {
  const CounterRng rng(24, "decode");
  uint64_t n = 0;
  int broken = 0;
  for (int i = 0; i < 3000; ++i) {
    const int p = 1 + static_cast<int>(rng.Below(n++, 3));
    const int groups = 1 + static_cast<int>(rng.Below(n++, 3));
    Schedule s = MakeOrDie("decode", DecodeSizes(p, 3 * groups, groups));
    // Another source, or none.
    const auto m = static_cast<int32_t>(rng.Below(n++, s.carried.size()));
    if (m > 0 && i % 2 == 0) {
      const auto source = static_cast<int32_t>(rng.Below(n++, static_cast<uint64_t>(m)));
      if (s.carried.Reader(source) < 0) {
        s.carried.Set(m, source);
      } else {
        s.carried.Set(m, -1);
      }
    }
    for (uint64_t k = rng.Below(n++, 3); k > 0; --k) Mutate(rng, &n, &s);
    const bool valid = Validate(s).ok();
    ASSERT_EQ(valid, BruteForceValid(s)) << ToText(s) << Validate(s);
    broken += valid ? 0 : 1;
    if (valid) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
      ASSERT_EQ(CheckProgram(program), "") << ToText(s);
    }
  }
  EXPECT_GT(broken, 500);
}

TEST(Decode, RoundTrips) {
  for (const Schedule& s : {MakeOrDie("decode", DecodeSizes(1, 4, 2)),
                            MakeOrDie("prefill_decode", DecodeSizes(3, 8, 2, 2))}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule text, ParseSchedule(ToText(s)));
    EXPECT_EQ(ToText(text), ToText(s));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule json, ScheduleFromJson(ToJson(s), "--json=a.json"));
    EXPECT_EQ(ToJson(json), ToJson(s));
    EXPECT_EQ(json.carried, s.carried);
    EXPECT_EQ(text.carried, s.carried);
    EXPECT_TRUE(Validate(json).ok());
    EXPECT_FALSE(ToCsv(s).ok());
  }
}

TEST(Decode, Refusals) {
  EXPECT_EQ(Refusal("prefill_decode", DecodeSizes(2, 7, 2, 4)),
            "prefill_decode --micro_batches=7: the prompts of 2 groups alone are 8 passes "
            "(--slices=4)");
  SchemeParams copies = DecodeSizes(2, 4, 2);
  copies.data_parallel = 2;
  EXPECT_EQ(Refusal("decode", copies),
            "decode --data_parallel=2: a group's tokens come from one device; use "
            "--data_parallel=1");
  Schedule s = MakeOrDie("decode", DecodeSizes(2, 4, 2));
  s.carried.Set(3, 0);
  EXPECT_EQ(Validate(s).message(), "two micro-batches take what 0 made");
  s.carried.Set(3, 3);
  EXPECT_EQ(Validate(s).message(),
            "micro-batch 3 takes what micro-batch 3 made; it must be an earlier one");
  s.carried = {-1, -1, 0};
  EXPECT_EQ(Validate(s).message(), "3 micro-batches say what is carried to them, of 4");
  s = MakeOrDie("decode", DecodeSizes(2, 4, 2));
  std::swap(s.order[1][0], s.order[1][1]);
  EXPECT_EQ(Validate(s).message(),
            "device 1, position 1: 1F0 comes after that of micro-batch 1; with edges that carry "
            "the passes of a stage are in order");
}

}  // namespace
}  // namespace pipelab
