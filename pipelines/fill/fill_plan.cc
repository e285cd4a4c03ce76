#include "pipelines/fill/fill_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

constexpr size_t kOpenPlans = 32;
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();  // pieces

// A plan up to some gap.
struct OpenPlan {
  Nanoseconds work;
  std::vector<int64_t> done;  // [job] pieces
  FillPlan plan;
};

// One plan for each state of the jobs, those with the most work first.
std::vector<OpenPlan> BestOf(std::vector<OpenPlan> plans) {
  std::sort(plans.begin(), plans.end(), [](const OpenPlan& a, const OpenPlan& b) {
    return a.work != b.work ? a.work > b.work : a.done > b.done;
  });
  const auto same = [](const OpenPlan& a, const OpenPlan& b) { return a.done == b.done; };
  plans.erase(std::unique(plans.begin(), plans.end(), same), plans.end());
  if (plans.size() > kOpenPlans) plans.resize(kOpenPlans);
  return plans;
}

// Fills one gap of one step with as many of the jobs' next pieces as fit.
class GapPacker {
 public:
  GapPacker(const FillProblem& problem, const FillRules& rules)
      : problem_(problem), rules_(rules) {}

  // The plan with each job alone in the gap, and with others behind it; of several jobs, with none.
  void Extend(const OpenPlan& plan, int iteration, int gap, std::vector<OpenPlan>* longer) const {
    const int jobs = static_cast<int>(problem_.jobs.size());
    const size_t before = longer->size();
    if (jobs > 1) longer->push_back(plan);
    for (int first = 0; first < jobs; ++first) {
      int64_t most = kAll;
      // Some pieces fewer may leave room for another job.
      for (int fewer = 0; fewer < (jobs == 1 ? 1 : kFewer) && most > 0; ++fewer) {
        OpenPlan begun = plan;
        Nanoseconds left = rules_.Room(gap);
        const int64_t pieces = Add(first, most, iteration, gap, &left, &begun);
        most = pieces - 1;
        if (pieces > 0) AddOthers(first, iteration, gap, left, begun, longer);
      }
    }
    if (longer->size() == before) longer->push_back(plan);  // nothing fits
  }

 private:
  static constexpr int kFewer = 4;

  void AddOthers(int first, int iteration, int gap, Nanoseconds left, const OpenPlan& begun,
                 std::vector<OpenPlan>* longer) const {
    const int jobs = static_cast<int>(problem_.jobs.size());
    longer->push_back(begun);
    for (int second = 0; second < jobs; ++second) {
      OpenPlan filled = begun;
      Nanoseconds rest = left;
      if (second == first || Add(second, kAll, iteration, gap, &rest, &filled) == 0) continue;
      for (int job = 0; job < jobs; ++job) {
        if (job != first && job != second) Add(job, kAll, iteration, gap, &rest, &filled);
      }
      longer->push_back(std::move(filled));
    }
  }

  // As many pieces as fit, `most` at the most; how many.
  int64_t Add(int job, int64_t most, int iteration, int gap, Nanoseconds* left,
              OpenPlan* plan) const {
    const FillJob& chain = problem_.jobs[job];
    const int64_t done = plan->done[job];
    Nanoseconds time = rules_.BeginTime(job);
    int64_t n = done;
    for (; n < chain.num_pieces() && n - done < most; ++n) {
      const FillPiece& piece = chain.piece(n);
      if (time + piece.time > *left || rules_.Needed(job, n) > problem_.gaps[gap].free) break;
      time += piece.time;
    }
    if (n == done) return 0;
    *left -= time;
    plan->work += time - rules_.BeginTime(job);
    plan->plan.runs.push_back({iteration, gap, job, done, n - done});
    plan->done[job] = n;
    return n - done;
  }

  const FillProblem& problem_;
  const FillRules& rules_;
};

// What is wrong with a gap's runs, as one says it after the gap's name; empty: nothing.
std::string TooMuch(const FillProblem& problem, const FillRules& rules, int gap,
                    const std::vector<FillRun>& runs) {
  Nanoseconds time;
  for (const FillRun& run : runs) {
    time += rules.TimeOf(run);
    for (int64_t n = run.first_piece; n < run.first_piece + run.pieces; ++n) {
      const Bytes needed = rules.Needed(run.job, n);
      if (needed > problem.gaps[gap].free) {
        return absl::StrCat("piece ", n, " of fill job ", problem.jobs[run.job].name, " needs ",
                            needed.value(), " bytes, and ", problem.gaps[gap].free.value(),
                            " are free");
      }
    }
  }
  if (time <= rules.Room(gap)) return "";
  return absl::StrCat("its fill jobs take ", time.value(), " ns, and the gap less the slack is ",
                      rules.Room(gap).value(), " ns");
}

bool FitsAlone(const FillProblem& problem, const FillRules& rules, int gap, int job,
               int64_t piece) {
  FillRun run;
  run.job = job;
  run.first_piece = piece;
  run.pieces = 1;
  return TooMuch(problem, rules, gap, {run}).empty();
}

// Later than the run before, of a job and a gap that are there, and the job's next pieces.
absl::Status CheckOrder(const FillProblem& problem, const FillPlan& plan) {
  std::vector<int64_t> done(problem.jobs.size(), 0);
  std::pair<int, int> last(0, 0);
  for (size_t r = 0; r < plan.runs.size(); ++r) {
    const FillRun& run = plan.runs[r];
    const auto wrong = [r](const std::string& what) {
      return absl::InvalidArgumentError(absl::StrCat("fill plan: run ", r, ": ", what));
    };
    if (run.job < 0 || run.job >= static_cast<int>(problem.jobs.size())) {
      return wrong(absl::StrCat("there is no job ", run.job));
    }
    if (run.gap < 0 || run.gap >= static_cast<int>(problem.gaps.size()) || run.iteration < 0 ||
        run.iteration >= problem.iterations) {
      return wrong(absl::StrCat("there is no gap ", run.gap, " of step ", run.iteration));
    }
    const std::pair<int, int> now(run.iteration, run.gap);
    if (now < last) return wrong(absl::StrCat("gap ", run.gap, " is before the last run's"));
    last = now;
    const FillJob& job = problem.jobs[run.job];
    if (run.first_piece != done[run.job] || run.pieces < 1 ||
        run.pieces > job.num_pieces() - run.first_piece) {
      return wrong(absl::StrCat("fill job ", job.name, " has done ", done[run.job], " of ",
                                job.num_pieces(), " pieces and cannot go on with ", run.pieces,
                                " from ", run.first_piece, " on"));
    }
    done[run.job] += run.pieces;
  }
  return absl::OkStatus();
}

}  // namespace

FillRules::FillRules(const FillProblem& problem)
    : problem_(problem), stays_(problem.jobs.size(), false) {
  for (size_t job = 0; job < problem.jobs.size(); ++job) {
    if (staying_ + problem.jobs[job].state > problem.always_free) continue;
    stays_[job] = true;
    staying_ += problem.jobs[job].state;
  }
}

Nanoseconds FillRules::BeginTime(int job) const {
  const FillJob& chain = problem_.jobs[job];
  return chain.switch_time + (stays_[job] ? Nanoseconds(0) : chain.load_time);
}

Nanoseconds FillRules::TimeOf(const FillRun& run) const {
  Nanoseconds time = BeginTime(run.job);
  for (int64_t n = run.first_piece; n < run.first_piece + run.pieces; ++n) {
    time += problem_.jobs[run.job].piece(n).time;
  }
  return time;
}

Bytes FillRules::Needed(int job, int64_t piece) const {
  const FillJob& chain = problem_.jobs[job];
  return staying_ + (stays_[job] ? Bytes(0) : chain.state) + chain.piece(piece).bytes;
}

Nanoseconds FillRules::Room(int gap) const { return problem_.gaps[gap].length() - problem_.slack; }

absl::Status CheckFillable(const FillProblem& problem) {
  const FillRules rules(problem);
  for (size_t j = 0; j < problem.jobs.size(); ++j) {
    const FillJob& job = problem.jobs[j];
    const int number = static_cast<int>(j);
    if (job.pieces.empty() || job.rounds < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("fill job ", job.name, ": it has nothing to do: at least one piece, once"));
    }
    for (size_t n = 0; n < job.pieces.size(); ++n) {
      Nanoseconds longest;
      Bytes freest;
      bool fits = false;
      for (size_t g = 0; g < problem.gaps.size() && !fits; ++g) {
        fits = FitsAlone(problem, rules, static_cast<int>(g), number, static_cast<int64_t>(n));
        longest = std::max(longest, rules.Room(static_cast<int>(g)));
        freest = std::max(freest, problem.gaps[g].free);
      }
      if (fits) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("fill job ", job.name, ": piece ", n, " takes ",
                       ToString(rules.BeginTime(number) + job.pieces[n].time), " and needs ",
                       ToString(rules.Needed(number, static_cast<int64_t>(n))),
                       ", too large for every gap: the longest has ", ToString(longest),
                       ", the emptiest ", ToString(freest), " free"));
    }
  }
  return absl::OkStatus();
}

FillPlan GreedyFill(const FillProblem& problem) {
  const FillRules rules(problem);
  const GapPacker packer(problem, rules);
  std::vector<OpenPlan> open(1);
  open[0].done.assign(problem.jobs.size(), 0);
  for (int iteration = 0; iteration < problem.iterations; ++iteration) {
    for (size_t gap = 0; gap < problem.gaps.size(); ++gap) {
      std::vector<OpenPlan> longer;
      for (const OpenPlan& plan : open)
        packer.Extend(plan, iteration, static_cast<int>(gap), &longer);
      open = BestOf(std::move(longer));
    }
  }
  return open[0].plan;
}

absl::Status CheckFillPlan(const FillProblem& problem, const FillPlan& plan) {
  absl::Status order = CheckOrder(problem, plan);
  if (!order.ok()) return order;
  const FillRules rules(problem);
  for (size_t r = 0; r < plan.runs.size();) {
    const int iteration = plan.runs[r].iteration, gap = plan.runs[r].gap;
    std::vector<FillRun> together;
    for (; r < plan.runs.size() && plan.runs[r].iteration == iteration && plan.runs[r].gap == gap;
         ++r) {
      together.push_back(plan.runs[r]);
    }
    const std::string wrong = TooMuch(problem, rules, gap, together);
    if (wrong.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat("fill plan: ", GapName(problem.gaps[gap], gap),
                                                   ", step ", iteration, ": ", wrong));
  }
  return absl::OkStatus();
}

Nanoseconds PlannedWork(const FillProblem& problem, const FillPlan& plan) {
  const FillRules rules(problem);
  Nanoseconds work;
  for (const FillRun& run : plan.runs) work += rules.TimeOf(run) - rules.BeginTime(run.job);
  return work;
}

}  // namespace pipelab
