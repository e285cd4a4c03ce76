#include "pipelines/analysis/arrivals.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int64_t kSamples = 1000;

StreamRules Rules(WhenFull when_full, int64_t places = 1) {
  StreamRules rules;
  rules.tick = Nanoseconds(30);
  rules.latency = Nanoseconds(120);
  rules.places = places;
  rules.when_full = when_full;
  return rules;
}

StreamFigures Even(int64_t period, const StreamRules& rules) {
  return RunArrivals(EvenArrivals(kSamples, Nanoseconds(period)), rules);
}

TEST(Arrivals, ASlowStreamIsOnlyOnItsWay) {
  for (const WhenFull when : {WhenFull::kBlock, WhenFull::kDropOldest}) {
    for (int64_t period : {30, 31, 50}) {
      const StreamFigures f = Even(period, Rules(when));
      EXPECT_EQ(f.taken, kSamples);
      EXPECT_EQ(f.dropped + f.blocked, 0);
      EXPECT_EQ(f.median, Nanoseconds(120));
      EXPECT_EQ(f.longest, Nanoseconds(120));
      EXPECT_EQ(f.end, Nanoseconds((kSamples - 1) * period + 120));
    }
  }
}

// Sample m waits m (tick - period).
TEST(Arrivals, AFastStreamThatWaits) {
  const StreamFigures f = Even(20, Rules(WhenFull::kBlock));
  EXPECT_EQ(f.taken, kSamples);
  EXPECT_EQ(f.dropped, 0);
  EXPECT_EQ(f.longest, Nanoseconds(120 + 10 * (kSamples - 1)));
  EXPECT_EQ(f.median, Nanoseconds(120 + 10 * (kSamples / 2 - 1)));
  EXPECT_EQ(f.p99, Nanoseconds(120 + 10 * (kSamples * 99 / 100 - 1)));
  EXPECT_EQ(f.end, Nanoseconds((kSamples - 1) * 30 + 120));
  EXPECT_GT(f.blocked, kSamples * 9 / 10);
}

// The pipeline never waits, so as many are dropped as it has no ticks for; no place keeps a sample
// for longer than a tick for each place.
TEST(Arrivals, AFastStreamThatDrops) {
  for (int64_t places : {1, 3}) {
    const StreamFigures f = Even(20, Rules(WhenFull::kDropOldest, places));
    EXPECT_EQ(f.taken + f.dropped, kSamples);
    EXPECT_NEAR(static_cast<double>(f.taken), kSamples * 20 / 30.0, 2.0 * places);
    EXPECT_LE(f.longest, Nanoseconds(120 + 30 * places));
    EXPECT_EQ(f.blocked, 0);
  }
}

// The simulator, of releases, and the rule of thumb for a stream: the same where all ticks are.
TEST(Arrivals, ReleasesAreTheBlockingStream) {
  for (const char* scheme : {"over_time", "over_time_inference", "local", "gpipe", "1f1b"}) {
    for (int p : {1, 2, 4}) {
      SchemeParams sizes{p, 20};
      PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakeSchedule(scheme, sizes));
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(schedule), {}));
      CostTable costs = CostTable::Unit(program.schedule, Nanoseconds(10));
      const absl::string_view name(scheme);
      const int64_t tick = name == "gpipe" || name == "over_time_inference" ? 10 : 30;
      for (int64_t period : {5, 10, 25, 30, 45, 100}) {
        SCOPED_TRACE(testing::Message() << scheme << " P=" << p << " every " << period);
        costs.releases = EvenArrivals(20, Nanoseconds(period));
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs));
        const StreamFigures f = FiguresOfReleases(program, trace, costs.releases);
        EXPECT_EQ(f.taken, 20);
        if (name == "1f1b") {  // its first forwards come without a backward between them
          EXPECT_TRUE(period < 30 * p || f.longest == Nanoseconds(10 * p));
          continue;
        }
        StreamRules rules;
        rules.tick = Nanoseconds(tick);
        rules.latency = Nanoseconds(10 * p);
        rules.places = 20;
        const StreamFigures rule = RunArrivals(costs.releases, rules);
        EXPECT_EQ(f.median, rule.median);
        EXPECT_EQ(f.p99, rule.p99);
        EXPECT_EQ(f.longest, rule.longest);
        EXPECT_EQ(f.end, rule.end);
        EXPECT_EQ(f.blocked > 0, period < tick);
      }
    }
  }
}

// What begins at even times has the rules that the test above writes down; a schedule with gaps, or
// of few micro-batches, has none.
TEST(Arrivals, RulesOfATrace) {
  const auto rules = [](const char* scheme, int devices, int micro_batches) {
    Schedule s = MakeSchedule(scheme, {devices, micro_batches}).value();
    const Program program = Lower(std::move(s), {}).value();
    return SteadyRules(
        program, Simulate(program, CostTable::Unit(program.schedule, Nanoseconds(10))).value());
  };
  for (const char* scheme : {"over_time", "over_time_inference", "local"}) {
    for (int p : {1, 2, 4}) {
      const auto found = rules(scheme, p, 20);
      ASSERT_TRUE(found.has_value()) << scheme << " " << p;
      EXPECT_EQ(found->tick,
                Nanoseconds(absl::string_view(scheme) == "over_time_inference" ? 10 : 30));
      EXPECT_EQ(found->latency, Nanoseconds(10 * p));
    }
  }
  EXPECT_FALSE(rules("over_time", 2, 3).has_value());
  EXPECT_FALSE(rules("interleaved", 4, 16).has_value());
}

TEST(Arrivals, ReleasesMustFit) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakeSchedule("gpipe", {2, 4}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(schedule), {}));
  CostTable costs = CostTable::Unit(program.schedule);
  costs.releases = EvenArrivals(3, Nanoseconds(1));
  EXPECT_EQ(Simulate(program, costs).status().message(),
            "the cost table has arrivals of 3 micro-batches, the schedule has 4");
  costs.releases = EvenArrivals(4, Nanoseconds(-1));
  EXPECT_EQ(Simulate(program, costs).status().message(),
            "a micro-batch arrives at -1 ns; it must be from 0 to 2^61");
}

// GPipe with equal passes of 1: sample m waits for those before it on the first stage only.
TEST(Arrivals, LatenciesOfATrace) {
  SchemeParams sizes;
  sizes.devices = 4;
  sizes.micro_batches = 6;
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule schedule, MakeSchedule("gpipe", sizes));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(std::move(schedule), {}));
  const CostTable costs = CostTable::Unit(program.schedule);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace trace, Simulate(program, costs));
  const Nanoseconds forward = costs.stages[0].forward;
  EXPECT_EQ(SampleLatencies(program, trace),
            std::vector<Nanoseconds>(6, Nanoseconds(4 * forward.value())));
}

struct Forwards {
  Program program;
  Trace trace;
};

Forwards ForwardsOf(const std::vector<std::pair<int64_t, int64_t>>& times) {
  Forwards f;
  std::vector<Instruction>& list = f.program.instructions.emplace_back();
  DeviceTrace& device = f.trace.devices.emplace_back();
  for (const auto& [begin, end] : times) {
    Instruction& i = list.emplace_back();
    i.action.micro_batch = static_cast<int32_t>(list.size()) - 1;
    device.spans.push_back({begin, end});
  }
  return f;
}

// Rules are read from the second half of six micro-batches, which begin every 10 ns and take 5, 7
// and 9.
TEST(Arrivals, RulesAreOfTheMiddleLatency) {
  const Forwards six = ForwardsOf({{0, 1}, {3, 4}, {9, 10}, {20, 25}, {30, 37}, {40, 49}});
  const auto rules = SteadyRules(six.program, six.trace);
  ASSERT_TRUE(rules.has_value());
  EXPECT_EQ(rules->tick, Nanoseconds(10));
  EXPECT_EQ(rules->latency, Nanoseconds(7));
  const Forwards one = ForwardsOf({{0, 0}});
  EXPECT_EQ(SampleLatencies(one.program, one.trace), std::vector<Nanoseconds>(1, Nanoseconds(0)));
}

// The k-th of n in order, k being a share of n and rounded up.
TEST(Arrivals, SharesOfTimes) {
  const auto shares = [](int64_t n) {
    std::vector<Nanoseconds> times;
    for (int64_t i = n; i > 0; --i) times.emplace_back(i);
    return SharesOf(times);
  };
  EXPECT_EQ(shares(0).longest, Nanoseconds(0));
  for (const auto& [n, median, p99] :
       {std::make_tuple(1, 1, 1), {2, 1, 2}, {3, 2, 3}, {100, 50, 99}, {101, 51, 100}}) {
    EXPECT_EQ(shares(n).median, Nanoseconds(median)) << n;
    EXPECT_EQ(shares(n).p99, Nanoseconds(p99)) << n;
    EXPECT_EQ(shares(n).longest, Nanoseconds(n)) << n;
  }
}

// In order, and as many a second as they should be, within three standard deviations.
TEST(Arrivals, RandomArrivalsHaveTheirRate) {
  constexpr int64_t kCount = 10000;
  const std::vector<Nanoseconds> arrivals = RandomArrivals(kCount, /*per_second=*/1e6, /*seed=*/5);
  ASSERT_EQ(static_cast<int64_t>(arrivals.size()), kCount);
  EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
  EXPECT_GE(arrivals.front(), Nanoseconds(0));
  EXPECT_NEAR(static_cast<double>(arrivals.back().value()), 1e3 * kCount, 1e3 * 3 * 100);
}

TEST(Arrivals, ABurstFillsThePlaces) {
  const std::vector<Nanoseconds> burst(5, Nanoseconds(100));
  const StreamFigures drops = RunArrivals(burst, Rules(WhenFull::kDropOldest, 2));
  EXPECT_EQ(drops.taken, 3) << "one at once, two in places";
  EXPECT_EQ(drops.dropped, 2);
  EXPECT_EQ(drops.longest, Nanoseconds(120 + 2 * 30));
  const StreamFigures blocks = RunArrivals(burst, Rules(WhenFull::kBlock, 2));
  EXPECT_EQ(blocks.taken, 5);
  EXPECT_EQ(blocks.blocked, 2);
  EXPECT_EQ(blocks.longest, Nanoseconds(120 + 4 * 30));
  EXPECT_EQ(RunArrivals({}, Rules(WhenFull::kBlock)).taken, 0);
}

}  // namespace
}  // namespace pipelab
