// The most that gaps can hold, by looking at every state: how far each job is after each gap.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipelines/fill/fill_plan.h"

namespace pipelab {
namespace {

constexpr int64_t kMostStates = int64_t{1} << 22;  // over all gaps

class ExactSearch {
 public:
  explicit ExactSearch(const FillProblem& problem) : problem_(problem), rules_(problem) {
    for (const FillJob& job : problem.jobs) {
      place_.push_back(states_);
      states_ *= job.num_pieces() + 1;
      if (states_ * NumGaps() > kMostStates) return;
    }
  }
  int64_t NumGaps() const {
    return static_cast<int64_t>(problem_.gaps.size()) * problem_.iterations;
  }
  bool TooMuch() const { return states_ * NumGaps() > kMostStates; }

  FillPlan Find() {
    std::vector<char> reached(states_, 0);
    reached[0] = 1;
    before_.assign(NumGaps(), std::vector<int64_t>(states_, -1));
    for (int64_t g = 0; g < NumGaps(); ++g) {
      gap_ = static_cast<int>(g % static_cast<int64_t>(problem_.gaps.size()));
      before_of_gap_ = &before_[g];
      for (int64_t state = 0; state < states_; ++state) {
        if (!reached[state]) continue;
        from_ = state;
        Extend(0, state, rules_.Room(gap_));
      }
      for (int64_t state = 0; state < states_; ++state) reached[state] = before_[g][state] >= 0;
    }
    return PlanTo(Best(reached));
  }

 private:
  int64_t Done(int64_t state, int job) const {
    return state / place_[job] % (problem_.jobs[job].num_pieces() + 1);
  }

  // All that jobs from `job` on can do in what is left of the gap.
  void Extend(int job, int64_t state, Nanoseconds left) {
    if (job == static_cast<int>(problem_.jobs.size())) {
      if ((*before_of_gap_)[state] < 0) (*before_of_gap_)[state] = from_;
      return;
    }
    Extend(job + 1, state, left);
    left -= rules_.BeginTime(job);
    const FillJob& chain = problem_.jobs[job];
    for (int64_t n = Done(state, job); n < chain.num_pieces(); ++n) {
      left -= chain.piece(n).time;
      if (left < Nanoseconds(0) || rules_.Needed(job, n) > problem_.gaps[gap_].free) return;
      state += place_[job];
      Extend(job + 1, state, left);
    }
  }

  int64_t Best(const std::vector<char>& reached) const {
    int64_t best = 0;
    Nanoseconds most;
    for (int64_t state = 0; state < states_; ++state) {
      if (!reached[state]) continue;
      Nanoseconds work;
      for (size_t j = 0; j < problem_.jobs.size(); ++j) {
        const int job = static_cast<int>(j);
        for (int64_t n = 0; n < Done(state, job); ++n) work += problem_.jobs[j].piece(n).time;
      }
      if (work > most) {
        most = work;
        best = state;
      }
    }
    return best;
  }

  FillPlan PlanTo(int64_t state) const {
    FillPlan plan;
    const int gaps = static_cast<int>(problem_.gaps.size());
    for (int64_t g = NumGaps() - 1; g >= 0; --g) {
      const int64_t from = before_[g][state];
      for (int job = static_cast<int>(problem_.jobs.size()) - 1; job >= 0; --job) {
        const int64_t pieces = Done(state, job) - Done(from, job);
        if (pieces == 0) continue;
        plan.runs.push_back(
            {static_cast<int>(g / gaps), static_cast<int>(g % gaps), job, Done(from, job), pieces});
      }
      state = from;
    }
    std::reverse(plan.runs.begin(), plan.runs.end());
    return plan;
  }

  const FillProblem& problem_;
  const FillRules rules_;
  std::vector<int64_t> place_;  // [job] of its count in a state's number
  int64_t states_ = 1;
  std::vector<std::vector<int64_t>> before_;  // [gap][state] a state before the gap; -1: none
  std::vector<int64_t>* before_of_gap_ = nullptr;
  int64_t from_ = 0;
  int gap_ = 0;
};

}  // namespace

absl::StatusOr<FillPlan> ExactFill(const FillProblem& problem) {
  ExactSearch search(problem);
  if (search.TooMuch()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("exact fill plan: ", problem.jobs.size(), " jobs and ", search.NumGaps(),
                     " gaps have too many states; the greedy plan takes any number"));
  }
  return search.Find();
}

}  // namespace pipelab
