// The planners that minimise a batch's time (DAPPLE's, BaPipe's) against every plan of small
// chains, with arithmetic of its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/batch_time.h"
#include "pipelines/planners/plan_costs.h"
#include "pipelines/planners/planners.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// A chain, here and there with a skip.
PlanProblem Chain(int size, Draw* draw) {
  PlanProblem p;
  p.objective = PlanObjective::kPipeDream;
  p.levels = {{2, 4, 0.25}, {2, 1, 0.5}};
  p.devices = 4;
  p.micro_batches = 1 + draw->Below(6);
  const bool sizes = draw->Below(2) == 0;
  if (sizes) {
    p.micro_batch_size = 4;
    p.micro_batch_sizes = {1, 2, 4};
  }
  for (int v = 0; v < size; ++v) {
    PlanOperator o;
    o.id = absl::StrCat(v);
    o.output_bytes = draw->Number(8);
    PlanVariant plain;
    plain.forward_time = 1 + draw->Number(8);
    plain.time = plain.forward_time * 3 + draw->Number(4);
    plain.parameter_bytes = draw->Number(20);
    plain.in_flight_bytes = draw->Number(8);
    plain.fixed_bytes = draw->Number(8);
    for (size_t i = 0; i < p.micro_batch_sizes.size(); ++i) {
      const double part = static_cast<double>(i + 2) / 4;
      plain.times.push_back({plain.forward_time * part, plain.time * part});
    }
    o.variants[1] = {plain};
    if (draw->Below(3) == 0) {
      PlanVariant again = plain;
      again.recompute = true;
      again.time += plain.forward_time;
      for (PlanTimes& t : again.times) t.time += t.forward;
      again.in_flight_bytes /= 2;
      o.variants[1].push_back(again);
    }
    p.operators.push_back(o);
    if (v > 0) p.edges.push_back({v - 1, v, o.output_bytes});
    if (v > 1 && draw->Below(4) == 0) p.edges.push_back({v - 2, v, o.output_bytes});
  }
  EXPECT_THAT(FinishProblem(&p, "test"), IsOk());
  return p;
}

// Every plan of consecutive stages, by the definition.
class BatchBruteForce {
 public:
  BatchBruteForce(const PlanProblem& problem, bool copies) : p_(problem), copies_(copies) {}

  // `kfkb` 0: DAPPLE's schedule.
  double Best(int kfkb) {
    best_ = kInfinity;
    kfkb_ = kfkb;
    stages_.clear();
    From(p_.size(), p_.devices);
    return best_;
  }

 private:
  struct Stage {
    int begin = 0, end = 0;
    int64_t first = 0, copies = 0;
  };

  // Stages in front of what begins at `end` on devices from `limit` on.
  void From(int end, int64_t limit) {
    if (end == 0) {
      best_ = std::min(best_, Time());
      return;
    }
    for (int begin = 0; begin < end; ++begin) {
      for (int64_t last = 1; last <= limit; ++last) {
        // Right in front, or from the end of a unit of two on; anywhere where speeds differ.
        if (p_.device_speeds.empty() && last != limit && last != limit / 2 * 2) continue;
        for (int64_t copies = 1; copies <= (copies_ ? last : 1); ++copies) {
          stages_.insert(stages_.begin(), {begin, end, last - copies, copies});
          From(begin, last - copies);
          stages_.erase(stages_.begin());
        }
      }
    }
  }

  double Bandwidth(int64_t first, int64_t last, double* latency) const {
    const PlanLevel& level = p_.levels[first / 2 == last / 2 ? 0 : 1];
    *latency = level.latency;
    return level.bandwidth;
  }

  double Transfer(const Stage& a, const Stage& b) const {
    double bytes = 0, latency = 0;
    for (int v = 0; v < a.end; ++v) {
      bool crosses = false;
      for (const PlanEdge& e : p_.edges) crosses |= e.from == v && e.to >= a.end;
      if (crosses) bytes += p_.operators[v].output_bytes;
    }
    const double bandwidth = Bandwidth(a.first, b.first + b.copies - 1, &latency);
    return latency + bytes / static_cast<double>(std::min(a.copies, b.copies)) / bandwidth;
  }

  double Time() const {
    const int size = static_cast<int>(stages_.size());
    std::vector<BatchPassTimes> all;
    for (int s = 0; s < size; ++s) {
      BatchPassTimes passes;
      if (!Passes(s, size - s, &passes)) return kInfinity;
      const double before = s > 0 ? Transfer(stages_[s - 1], stages_[s]) : 0;
      const double after = s + 1 < size ? Transfer(stages_[s], stages_[s + 1]) : 0;
      if (kfkb_ == 1) {
        passes.forward += before + after;
        passes.backward += before + after;
      }
      if (kfkb_ != 1 && s > 0) all.push_back({before, before, 0});
      all.push_back(passes);
    }
    return BatchTime(all, p_.micro_batches);
  }

  bool Passes(int s, int64_t from_end, BatchPassTimes* passes) const {
    const Stage& stage = stages_[s];
    const int64_t in_flight = std::min(p_.micro_batches, from_end * std::max(1, kfkb_));
    const auto m = static_cast<double>(stage.copies);
    const double samples = static_cast<double>(p_.micro_batch_size) / m;
    for (int mode = 0; mode < 2; ++mode) {
      double forward = 0, time = 0, bytes = 0, weights = 0;
      for (int v = stage.begin; v < stage.end; ++v) {
        const auto& variants = p_.operators[v].variants.at(1);
        const PlanVariant& variant = variants[std::min<size_t>(mode, variants.size() - 1)];
        const PlanTimes t = TimesOfSamples(p_, variant, samples);
        forward += t.forward;
        time += t.time;
        weights += variant.parameter_bytes;
        bytes += variant.in_flight_bytes * static_cast<double>(in_flight) / m + variant.fixed_bytes;
      }
      if (bytes > p_.memory_bytes) continue;
      double speed = 1, latency = 0;
      for (int64_t d = stage.first; d < stage.first + stage.copies; ++d) {
        if (!p_.device_speeds.empty()) {
          speed = d == stage.first ? p_.device_speeds[d] : std::min(speed, p_.device_speeds[d]);
        }
      }
      *passes = {forward / speed, (time - forward) / speed, 0};
      if (stage.copies > 1) {
        const double bandwidth = Bandwidth(stage.first, stage.first + stage.copies - 1, &latency);
        passes->sum = 2 * (m - 1) * (weights / m / bandwidth + latency);
      }
      return true;
    }
    return false;
  }

  const PlanProblem& p_;
  const bool copies_;
  int kfkb_ = 0;
  std::vector<Stage> stages_;
  double best_ = kInfinity;
};

void ExpectPlan(const PlanProblem& p, const Plan& plan, double best) {
  if (best == kInfinity) {
    ASSERT_EQ(plan.state, PlanState::kInfeasible);
    ASSERT_FALSE(plan.has_plan());
    return;
  }
  ASSERT_EQ(plan.state, PlanState::kOptimal);
  ASSERT_NEAR(plan.value, best, 1e-9 * best);
  ASSERT_LE(PeakBytes(p, plan.stages), p.memory_bytes);
  int next = 0;
  int64_t device = 0;
  for (const PlanStage& stage : plan.stages) {
    for (int v : stage.layers) ASSERT_EQ(v, next++);
    ASSERT_GE(stage.first_device, device);
    device = stage.first_device + stage.data;
  }
  ASSERT_EQ(next, p.size());
  ASSERT_LE(device, p.devices);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const PlanReport report, CheckPlan(p, plan));
  ASSERT_LE(report.bound(), plan.value * (1 + 1e-9));
}

TEST(Dapple, BestOfAllPlansOfSmallChains) {
  for (int seed = 0; seed < 300; ++seed) {
    Draw draw(seed, "batch time");
    PlanProblem p = Chain(1 + seed % 5, &draw);
    for (const bool limited : {false, true}) {
      if (limited) p.memory_bytes = 4 + 4 * draw.Number(16);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("dapple", p, {}));
      ASSERT_NO_FATAL_FAILURE(ExpectPlan(p, plan, BatchBruteForce(p, true).Best(0))) << seed;
      EXPECT_EQ(ObjectiveUnit(p, plan.objective), "s/batch");
    }
  }
}

TEST(Dapple, CopiesStayWithinAUnitOfTheNetwork) {
  // Two operators of equal time, with many weights, on two nodes of two devices.
  Draw draw(1, "batch time");
  PlanProblem p = Chain(2, &draw);
  p.edges = {{0, 1, 1}};
  p.micro_batches = 8;
  for (PlanOperator& o : p.operators) {
    o.output_bytes = 1;
    o.variants[1].resize(1);
    o.variants[1][0].times.clear();
    o.variants[1][0].forward_time = 10;
    o.variants[1][0].time = 30;
    o.variants[1][0].parameter_bytes = 40;
  }
  p.micro_batch_sizes.clear();
  ASSERT_THAT(FinishProblem(&p, "test"), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("dapple", p, {}));
  ASSERT_EQ(plan.stages.size(), 2);
  EXPECT_EQ(plan.stages[0].data, 2);
  EXPECT_EQ(plan.stages[1].first_device, 2);
}

TEST(BaPipe, BestOfAllPlansOfSmallChains) {
  int overlapped = 0;
  for (int seed = 0; seed < 300; ++seed) {
    Draw draw(seed, "batch time");
    PlanProblem p = Chain(1 + seed % 5, &draw);
    if (seed % 2 == 0) {
      for (int d = 0; d < 4; ++d) p.device_speeds.push_back(0.5 + draw.Number(4) / 2);
    }
    for (const bool limited : {false, true}) {
      if (limited) p.memory_bytes = 4 + 4 * draw.Number(16);
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("bapipe", p, {}));
      BatchBruteForce brute_force(p, false);
      const double best = std::min(brute_force.Best(1), brute_force.Best(2));
      ASSERT_NO_FATAL_FAILURE(ExpectPlan(p, plan, best)) << seed;
      overlapped += plan.kfkb == 2 ? 1 : 0;
    }
  }
  // Both schedules are chosen.
  EXPECT_GT(overlapped, 50);
  EXPECT_LT(overlapped, 550);
}

TEST(BaPipe, SlowDevicesGetLess) {
  Draw draw(1, "batch time");
  PlanProblem p = Chain(1, &draw);
  p.edges.clear();
  p.micro_batch_sizes.clear();
  PlanOperator o = p.operators[0];
  o.variants[1].resize(1);
  o.variants[1][0].times.clear();
  o.variants[1][0].forward_time = 1;
  o.variants[1][0].time = 3;
  o.output_bytes = 0;
  p.operators.assign(12, o);
  for (int v = 1; v < 12; ++v) p.edges.push_back({v - 1, v, 0});
  p.micro_batches = 64;
  p.device_speeds = {1, 2, 2, 1};
  p.levels = {{4, 1e9, 0}};
  ASSERT_THAT(FinishProblem(&p, "test"), IsOk());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("bapipe", p, {}));
  ASSERT_EQ(plan.stages.size(), 4);
  EXPECT_EQ(plan.stages[0].layers.size(), 2);
  EXPECT_EQ(plan.stages[1].layers.size(), 4);
  EXPECT_EQ(plan.stages[2].layers.size(), 4);
  EXPECT_EQ(plan.stages[3].layers.size(), 2);
}

TEST(BatchTimePlanners, TheCheckerFindsWhatIsWrong) {
  Draw draw(4, "batch time");
  PlanProblem p = Chain(5, &draw);
  p.micro_batches = 6;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("bapipe", p, {}));
  ASSERT_GE(plan.stages.size(), 2);
  const auto error = [&](auto change) {
    Plan wrong = plan;
    change(&wrong);
    return std::string(CheckPlan(p, wrong).status().message());
  };
  EXPECT_EQ(error([](Plan*) {}), "");
  EXPECT_THAT(error([](Plan* w) { w->value *= 0.99; }), HasSubstr("the plan says"));
  EXPECT_THAT(error([](Plan* w) { w->stages[1].first_device = w->stages[0].first_device; }),
              HasSubstr("stage 1: devices"));
  EXPECT_THAT(error([](Plan* w) { w->stages[0].in_flight = 1; }),
              HasSubstr("stage 0: 1 micro-batches in flight"));
  EXPECT_THAT(error([](Plan* w) { w->stages.back().first_device = 4; }), HasSubstr("has 4"));
}

TEST(BatchTimePlanners, SayWhenTheyWereStopped) {
  Draw draw(2, "batch time");
  PlanProblem p = Chain(40, &draw);
  p.micro_batches = 64;
  p.levels = {{2, 4, 0.25}, {32, 1, 0.5}};
  p.devices = 64;
  ASSERT_THAT(FinishProblem(&p, "test"), IsOk());
  PlannerOptions options;
  options.time_limit = absl::ZeroDuration();
  for (const char* planner : {"dapple", "bapipe"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(planner, p, options));
    EXPECT_EQ(plan.state, PlanState::kTimeLimit) << planner;
    ASSERT_TRUE(plan.has_plan());
    EXPECT_THAT(CheckPlan(p, plan), IsOk());
  }
}

TEST(BatchTimePlanners, Refuse) {
  Draw draw(1, "batch time");
  PlanProblem p = Chain(3, &draw);
  p.device_speeds = {1, 1};
  EXPECT_THAT(FinishProblem(&p, "x").message(), HasSubstr("2 speeds for 4 devices"));
  p.device_speeds = {1, 1, 0, 1};
  EXPECT_THAT(FinishProblem(&p, "x").message(), HasSubstr("speed 0: must be above 0"));
  p.device_speeds = {1, 2, 1, 1};
  ASSERT_THAT(FinishProblem(&p, "x"), IsOk());
  EXPECT_THAT(MakePlan("graphpipe", p, {}).status().message(),
              HasSubstr("--planner=graphpipe: it takes all devices to be as fast"));
  EXPECT_THAT(MakePlan("dapple", p, {}), IsOk());
}

}  // namespace
}  // namespace pipelab
