#include "pipelines/fill/fill_scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

FillRequest Request(double arrival, double work, double deadline = 1e9, int kind = 0) {
  FillRequest r;
  r.name = "job";
  r.kind = kind;
  r.arrival_s = arrival;
  r.work_s = work;
  r.deadline_s = deadline;
  return r;
}

std::vector<double> Ends(const FillOutcome& outcome) {
  std::vector<double> ends;
  for (const FillPlacement& p : outcome.placements) ends.push_back(p.end_s);
  return ends;
}

// A device at half speed; while it has the first job, three others come.
TEST(ScheduleFill, EachPolicyTakesItsOwnJobNext) {
  const std::vector<FillRequest> jobs = {Request(0, 10), Request(1, 4, 100, 1), Request(2, 2, 90),
                                         Request(3, 6, 50)};
  const std::vector<std::vector<double>> rates = {{0.5, 0.8}};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FillOutcome shortest,
                               ScheduleFill(jobs, rates, ShortestFirst));
  EXPECT_EQ(Ends(shortest), (std::vector<double>{20, 29, 24, 41}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FillOutcome work, ScheduleFill(jobs, rates, MostWork));
  EXPECT_EQ(Ends(work), (std::vector<double>{20, 25, 29, 41}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FillOutcome deadline,
                               ScheduleFill(jobs, rates, DeadlineFirst));
  EXPECT_EQ(Ends(deadline), (std::vector<double>{20, 41, 36, 32}));
  EXPECT_EQ(deadline.end_s, 41);
  EXPECT_EQ(deadline.work_s, 22);
  EXPECT_EQ(deadline.mean_wait_s, (20 + 40 + 34 + 29) / 4.0);
  EXPECT_EQ(deadline.busy_share, 1);
  EXPECT_EQ(deadline.missed_deadlines, 0);
}

TEST(ScheduleFill, ADeviceTakesOnlyWhatItsGapsHold) {
  const std::vector<FillRequest> jobs = {Request(0, 10, 15, 1), Request(0, 10, 15, 1),
                                         Request(5, 1)};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const FillOutcome o,
                               ScheduleFill(jobs, {{1, 0}, {1, 1}}, ShortestFirst));
  EXPECT_EQ(o.placements[0].device, 1);
  EXPECT_EQ(o.placements[1].begin_s, 10);
  EXPECT_EQ(o.placements[2].device, 0);
  EXPECT_EQ(o.missed_deadlines, 1);
  EXPECT_DOUBLE_EQ(o.busy_share, 21.0 / 40);
}

TEST(ScheduleFill, NamesWhatItCannotPlace) {
  FillRequest large = Request(0, 1, 9, 1);
  large.name = "large";
  EXPECT_THAT(ScheduleFill({Request(0, 1), large}, {{1, 0}}, MostWork),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "fill job large: it fits into no gap of any device"));
  EXPECT_THAT(ScheduleFill({Request(0, 1, 9, 2)}, {{1, 0}}, MostWork),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("there are 2 kinds")));
  EXPECT_THAT(ScheduleFill({Request(0, -1)}, {{1}}, MostWork),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("work of -1 s")));
  EXPECT_THAT(ScheduleFill({Request(std::nan(""), 1)}, {{1}}, MostWork),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("from nan s on")));
}

// What a policy is for, of one device's order of jobs that are all there: all orders, worked out.
struct OrderFigures {
  double mean_end = 0, lateness = -std::numeric_limits<double>::infinity(), done = 0;
};

OrderFigures FiguresOf(const std::vector<FillRequest>& jobs, const std::vector<double>& rates,
                       const std::vector<int>& order, double horizon) {
  OrderFigures f;
  double now = 0;
  for (const int j : order) {
    const double rate = rates[jobs[j].kind], takes = jobs[j].work_s / rate;
    f.done += rate * std::max(0.0, std::min(takes, horizon - now));
    now += takes;
    f.mean_end += now / static_cast<double>(order.size());
    f.lateness = std::max(f.lateness, now - jobs[j].deadline_s);
  }
  return f;
}

TEST(ScheduleFill, PoliciesAreTheBestOfAllOrdersAtWhatTheyAreFor) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CounterRng rng(seed, "policies");
    const std::vector<double> rates = {0.3, 0.5, 0.9};
    std::vector<FillRequest> jobs;
    for (uint64_t n = 0; n < 5; ++n) {
      jobs.push_back(Request(0, 1 + rng.Uniform(3 * n), 20 * rng.Uniform(3 * n + 1),
                             static_cast<int>(rng.Below(3 * n + 2, 3))));
    }
    const double horizon = 10 * rng.Uniform(99);
    std::vector<int> order(jobs.size());
    std::iota(order.begin(), order.end(), 0);
    OrderFigures best = FiguresOf(jobs, rates, order, horizon);
    while (std::next_permutation(order.begin(), order.end())) {
      const OrderFigures f = FiguresOf(jobs, rates, order, horizon);
      best.mean_end = std::min(best.mean_end, f.mean_end);
      best.lateness = std::min(best.lateness, f.lateness);
      best.done = std::max(best.done, f.done);
    }
    const auto with = [&](FillPolicy policy) {
      const FillOutcome o = ScheduleFill(jobs, {rates}, policy).value();
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](int a, int b) { return o.placements[a].begin_s < o.placements[b].begin_s; });
      return FiguresOf(jobs, rates, order, horizon);
    };
    EXPECT_NEAR(with(ShortestFirst).mean_end, best.mean_end, 1e-9) << seed;
    EXPECT_NEAR(with(DeadlineFirst).lateness, best.lateness, 1e-9) << seed;
    EXPECT_NEAR(with(MostWork).done, best.done, 1e-9) << seed;
  }
}

// Whoever waits, waits for every device that could do it; nothing begins before it came.
TEST(ScheduleFill, NoDeviceIsIdleWhileAJobForItWaits) {
  FillRequestOptions options;
  options.count = 300;
  options.kinds = 3;
  const std::vector<FillRequest> jobs = GenerateFillRequests(7, options);
  const std::vector<std::vector<double>> rates = {{0.2, 0.4, 0}, {0.3, 0, 0.5}, {0.1, 0.2, 0.3}};
  for (const NamedFillPolicy& policy : FillPolicies()) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const FillOutcome o, ScheduleFill(jobs, rates, policy.before));
    for (size_t a = 0; a < jobs.size(); ++a) {
      const FillPlacement& p = o.placements[a];
      ASSERT_GE(p.begin_s, jobs[a].arrival_s);
      EXPECT_NEAR(p.end_s - p.begin_s, jobs[a].work_s / rates[p.device][jobs[a].kind], 1e-6);
      for (size_t device = 0; device < rates.size(); ++device) {
        if (rates[device][jobs[a].kind] == 0) continue;
        // The device's jobs cover the wait.
        double covered = 0;
        for (const FillPlacement& q : o.placements) {
          if (q.device != static_cast<int>(device)) continue;
          covered +=
              std::max(0.0, std::min(q.end_s, p.begin_s) - std::max(q.begin_s, jobs[a].arrival_s));
        }
        EXPECT_NEAR(covered, p.begin_s - jobs[a].arrival_s, 1e-6) << policy.name;
      }
    }
  }
}

TEST(GenerateFillRequests, AreHeavyTailedAndTheSeedsOwn) {
  FillRequestOptions options;
  options.count = 100000;
  options.kinds = 4;
  const std::vector<FillRequest> jobs = GenerateFillRequests(1, options);
  std::vector<double> work;
  for (const FillRequest& r : jobs) {
    ASSERT_GE(r.work_s, options.least_work_s * (1 - 1e-9));
    ASSERT_LE(r.work_s, options.most_work_s * (1 + 1e-9));
    ASSERT_GE(r.deadline_s, r.arrival_s + options.least_patience * r.work_s * (1 - 1e-9));
    work.push_back(r.work_s);
  }
  EXPECT_NEAR(jobs.back().arrival_s / 100000, options.mean_gap_s, 1);
  const double total = std::accumulate(work.begin(), work.end(), 0.0);
  const double a = options.shape, l = options.least_work_s, h = options.most_work_s;
  const double mean = std::pow(l, a) / (1 - std::pow(l / h, a)) * a / (a - 1) *
                      (1 / std::pow(l, a - 1) - 1 / std::pow(h, a - 1));
  EXPECT_NEAR(total / 100000 / mean, 1, 0.05);
  std::sort(work.begin(), work.end());
  EXPECT_GT(std::accumulate(work.end() - 10000, work.end(), 0.0), total / 2);
  EXPECT_EQ(GenerateFillRequests(1, options)[5].work_s, jobs[5].work_s);
  EXPECT_NE(GenerateFillRequests(2, options)[5].work_s, jobs[5].work_s);
}

}  // namespace
}  // namespace pipelab
