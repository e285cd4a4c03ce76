#include "pipelines/fill/fill_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

Gap GapOf(int64_t length, int64_t free, int64_t begin = 0) {
  Gap gap;
  gap.begin_ns = begin;
  gap.end_ns = begin + length;
  gap.free = Bytes(free);
  return gap;
}

FillJob JobOf(const std::string& name, const std::vector<std::pair<int64_t, int64_t>>& pieces) {
  FillJob job;
  job.name = name;
  for (const auto& [time, bytes] : pieces) job.pieces.push_back({Nanoseconds(time), Bytes(bytes)});
  return job;
}

std::string Text(const FillPlan& plan) {
  std::string text;
  for (const FillRun& r : plan.runs) {
    absl::StrAppend(&text, r.iteration, "/", r.gap, ":", r.job, "[", r.first_piece, "+", r.pieces,
                    "] ");
  }
  return text;
}

TEST(GreedyFill, PacksConsecutivePiecesAndGoesOnInTheNextGapAndStep) {
  FillProblem problem{{GapOf(100, 50), GapOf(40, 50)}, Bytes(50)};
  problem.jobs = {JobOf("a", {{30, 1}, {30, 1}, {20, 1}})};
  problem.jobs[0].rounds = 3;
  problem.jobs[0].switch_time = Nanoseconds(10);
  problem.iterations = 2;
  // 10 + 30 + 30 + 20 of 100; 10 + 30 of 40; then 10 + 30 + 20 + 30, and nothing of 20 + ... fits.
  const FillPlan plan = GreedyFill(problem);
  EXPECT_EQ(Text(plan), "0/0:0[0+3] 0/1:0[3+1] 1/0:0[4+3] 1/1:0[7+1] ");
  EXPECT_EQ(PlannedWork(problem, plan), Nanoseconds(80 + 30 + 80 + 30));
  EXPECT_THAT(CheckFillPlan(problem, plan), IsOk());
  problem.slack = Nanoseconds(1);
  EXPECT_EQ(Text(GreedyFill(problem)), "0/0:0[0+3] 1/0:0[3+3] ");
}

TEST(GreedyFill, AStateThatDoesNotStayIsLoadedAndNeedsItsRoom) {
  FillProblem problem{{GapOf(100, 50), GapOf(100, 80)}, Bytes(30)};
  problem.jobs = {JobOf("a", {{30, 20}, {30, 20}, {30, 20}, {30, 20}})};
  problem.jobs[0].state = Bytes(30);
  problem.jobs[0].load_time = Nanoseconds(20);
  EXPECT_EQ(Text(GreedyFill(problem)), "0/0:0[0+3] 0/1:0[3+1] ");
  problem.always_free = Bytes(29);  // from here on it is loaded, for 20 ns a gap
  EXPECT_EQ(Text(GreedyFill(problem)), "0/0:0[0+2] 0/1:0[2+2] ");
  problem.gaps[0].free = Bytes(49);
  EXPECT_EQ(Text(GreedyFill(problem)), "0/1:0[0+2] ");
}

TEST(GreedyFill, TakesTheJobThatFillsTheGapBest) {
  FillProblem problem{{GapOf(100, 50)}, Bytes(50)};
  problem.jobs = {JobOf("a", {{60, 1}, {60, 1}}), JobOf("b", {{50, 1}, {50, 1}})};
  EXPECT_EQ(Text(GreedyFill(problem)), "0/0:1[0+2] ");
}

TEST(CheckFillable, NamesTheJobThatIsTooLargeForEveryGap) {
  FillProblem problem{{GapOf(2000000, 50), GapOf(1000000, 2048)}, Bytes(10)};
  problem.jobs = {JobOf("small", {{1000000, 50}}), JobOf("large", {{5, 5}, {2000000, 1024}})};
  EXPECT_THAT(CheckFillable(problem),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "fill job large: piece 1 takes 2 ms and needs 1 KiB, too large for "
                       "every gap: the longest has 2 ms, the emptiest 2 KiB free"));
  problem.jobs.pop_back();
  EXPECT_THAT(CheckFillable(problem), IsOk());
  problem.jobs[0].pieces.clear();
  EXPECT_THAT(CheckFillable(problem), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("small: it has nothing to do")));
}

// Up to three jobs of 12 pieces together, up to 8 gaps, in one or two steps.
FillProblem RandomProblem(uint64_t seed) {
  const CounterRng rng(seed, "fill");
  uint64_t drawn = 0;
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(rng.Below(drawn++, n)); };
  FillProblem problem;
  problem.iterations = 1 + static_cast<int>(below(2));
  const int64_t gaps = 1 + below(8 / problem.iterations);
  for (int64_t g = 0; g < gaps; ++g) problem.gaps.push_back(GapOf(20 + below(180), 30 + below(70)));
  problem.always_free = Bytes(below(30));
  problem.slack = Nanoseconds(below(4));
  const int64_t jobs = 1 + below(3);
  for (int64_t j = 0; j < jobs; ++j) {
    FillJob job;
    job.name = absl::StrCat("job", j);
    const int64_t pieces = 1 + below(12 / jobs);
    for (int64_t n = 0; n < pieces; ++n) {
      job.pieces.push_back({Nanoseconds(1 + below(60)), Bytes(below(40))});
    }
    job.rounds = 1 + below(12 / jobs / pieces);
    job.state = Bytes(below(25));
    job.switch_time = Nanoseconds(below(6));
    job.load_time = Nanoseconds(below(10));
    problem.jobs.push_back(job);
  }
  return problem;
}

// All plans, without any rule of the library but what a gap holds, written out again.
struct BruteForce {
  const FillProblem& problem;
  std::vector<bool> stays;
  Bytes staying;
  Nanoseconds best;

  explicit BruteForce(const FillProblem& p) : problem(p) {
    for (const FillJob& job : p.jobs) {
      stays.push_back((staying + job.state) <= p.always_free);
      if (stays.back()) staying += job.state;
    }
  }
  void Search(size_t gap, std::vector<int64_t> done, Nanoseconds work) {
    best = std::max(best, work);
    if (gap < problem.gaps.size() * problem.iterations) InGap(gap, 0, done, Nanoseconds(0), work);
  }
  void InGap(size_t gap, size_t job, std::vector<int64_t> done, Nanoseconds used,
             Nanoseconds work) {
    if (job == problem.jobs.size()) return Search(gap + 1, done, work);
    InGap(gap, job + 1, done, used, work);
    const FillJob& j = problem.jobs[job];
    const Gap& g = problem.gaps[gap % problem.gaps.size()];
    used += j.switch_time + (stays[job] ? Nanoseconds(0) : j.load_time);
    while (done[job] < j.rounds * static_cast<int64_t>(j.pieces.size())) {
      const FillPiece& piece = j.pieces[done[job]++ % j.pieces.size()];
      used += piece.time;
      work += piece.time;
      if (used + problem.slack > g.length()) return;
      if (staying + piece.bytes + (stays[job] ? Bytes(0) : j.state) > g.free) return;
      InGap(gap, job + 1, done, used, work);
    }
  }
};

TEST(ExactFill, IsTheBestOfAllPlans) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    FillProblem problem = RandomProblem(seed);
    if (problem.gaps.size() * problem.iterations > 4) continue;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const FillPlan plan, ExactFill(problem));
    ASSERT_THAT(CheckFillPlan(problem, plan), IsOk()) << seed;
    BruteForce all(problem);
    all.Search(0, std::vector<int64_t>(problem.jobs.size(), 0), Nanoseconds(0));
    EXPECT_EQ(PlannedWork(problem, plan), all.best) << seed;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(ExactFill, RefusesWhatIsTooLarge) {
  FillProblem problem{{GapOf(100, 50)}, Bytes(50)};
  problem.jobs.assign(4, JobOf("a", std::vector<std::pair<int64_t, int64_t>>(100, {1, 1})));
  EXPECT_THAT(ExactFill(problem),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("4 jobs and 1 gaps")));
}

TEST(GreedyFill, IsAtLeastNineTenthsOfTheExactPlan) {
  double least = 1, sum = 0;
  int with_one_job = 0;
  for (uint64_t seed = 1000; seed < 1500; ++seed) {
    const FillProblem problem = RandomProblem(seed);
    const FillPlan greedy = GreedyFill(problem);
    ASSERT_THAT(CheckFillPlan(problem, greedy), IsOk()) << seed;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const FillPlan exact, ExactFill(problem));
    const Nanoseconds most = PlannedWork(problem, exact), work = PlannedWork(problem, greedy);
    EXPECT_LE(work, most) << seed;
    if (problem.jobs.size() == 1) {
      ++with_one_job;
      EXPECT_EQ(work, most) << seed;
    }
    const double share = most.value() == 0 ? 1 : work / most;
    least = std::min(least, share);
    sum += share;
    EXPECT_GE(share, 0.9) << seed << ": " << Text(greedy) << " or " << Text(exact);
  }
  EXPECT_GT(with_one_job, 100);
  RecordProperty("least", absl::StrCat(least));
  RecordProperty("mean", absl::StrCat(sum / 500));
}

// What a gap holds, by the definition in the header and nothing else: -1 if the plan is not a
// sequence of the jobs' pieces, else the number of gaps with too little time or memory.
int OverfullGaps(const FillProblem& problem, const FillPlan& plan) {
  const BruteForce rules(problem);
  std::vector<int64_t> done(problem.jobs.size(), 0);
  std::vector<Nanoseconds> used(problem.gaps.size() * problem.iterations);
  std::vector<bool> overfull(used.size(), false);
  int64_t last = 0;
  for (const FillRun& r : plan.runs) {
    if (r.job < 0 || r.job >= static_cast<int>(problem.jobs.size())) return -1;
    const FillJob& j = problem.jobs[r.job];
    const int64_t slot = int64_t{r.iteration} * static_cast<int64_t>(problem.gaps.size()) + r.gap;
    if (r.gap < 0 || r.gap >= static_cast<int>(problem.gaps.size()) || slot < last ||
        slot >= static_cast<int64_t>(used.size())) {
      return -1;
    }
    last = slot;
    if (r.first_piece != done[r.job] || r.pieces < 1) return -1;
    const bool stays = rules.stays[r.job];
    used[slot] += j.switch_time + (stays ? Nanoseconds(0) : j.load_time);
    for (int64_t n = 0; n < r.pieces; ++n) {
      if (done[r.job] == j.num_pieces()) return -1;
      const FillPiece& piece = j.pieces[done[r.job]++ % j.pieces.size()];
      used[slot] += piece.time;
      const Bytes needed = rules.staying + piece.bytes + (stays ? Bytes(0) : j.state);
      if (needed > problem.gaps[r.gap].free) overfull[slot] = true;
    }
  }
  int count = 0;
  for (size_t slot = 0; slot < used.size(); ++slot) {
    const Gap& gap = problem.gaps[slot % problem.gaps.size()];
    count += overfull[slot] ||
             (used[slot] > Nanoseconds(0) && used[slot] + problem.slack > gap.length());
  }
  return count;
}

// A run in another gap, with other pieces, or a smaller gap, larger pieces.
void Mutate(const CounterRng& rng, uint64_t* drawn, FillProblem* problem, FillPlan* plan) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(rng.Below((*drawn)++, n)); };
  const size_t r = below(plan->runs.size());
  switch (below(5)) {
    case 0: {  // pieces from the job's next run
      FillRun& run = plan->runs[r];
      for (size_t next = r + 1; next < plan->runs.size(); ++next) {
        FillRun& later = plan->runs[next];
        if (later.job != run.job) continue;
        const int64_t moved = 1 + below(later.pieces);
        run.pieces += moved;
        later.first_piece += moved;
        later.pieces -= moved;
        if (later.pieces == 0) plan->runs.erase(plan->runs.begin() + static_cast<int64_t>(next));
        break;
      }
      break;
    }
    case 1:
      plan->runs[r].gap = static_cast<int>(below(problem->gaps.size()));
      break;
    case 2:
      plan->runs[r].pieces += 1;
      break;
    case 3:
      problem->gaps[plan->runs[r].gap].end_ns -= 1 + below(20);
      break;
    default:
      problem->gaps[plan->runs[r].gap].free -= Bytes(1 + below(20));
  }
}

TEST(CheckFillPlan, AgreesOnAHundredThousandMutatedPlansThatAreOverTimeOrMemory) {
  int overfull = 0, out_of_order = 0, fine = 0;
  std::vector<FillPlan> plans;
  for (uint64_t seed = 0; overfull < 100000; ++seed) {
    ASSERT_LT(seed, 2000000u);
    FillProblem problem = RandomProblem(seed % 2000);
    if (seed < 2000) plans.push_back(GreedyFill(problem));
    FillPlan plan = plans[seed % 2000];
    if (plan.runs.empty()) continue;
    const CounterRng rng(seed, "mutation");
    uint64_t drawn = 0;
    for (uint64_t n = rng.Below(drawn++, 3) + 1; n > 0 && !plan.runs.empty(); --n) {
      Mutate(rng, &drawn, &problem, &plan);
    }
    const absl::Status status = CheckFillPlan(problem, plan);
    const int gaps = OverfullGaps(problem, plan);
    if (gaps == 0) {
      ASSERT_THAT(status, IsOk()) << seed;
      ++fine;
    } else if (gaps < 0) {
      ASSERT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run ")));
      ++out_of_order;
    } else {
      ASSERT_THAT(status,
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fill plan: gap ")))
          << seed;
      ++overfull;
    }
  }
  EXPECT_GT(out_of_order, 1000);
  EXPECT_GT(fine, 1000);
}

}  // namespace
}  // namespace pipelab
