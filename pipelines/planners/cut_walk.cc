#include "pipelines/planners/cut_walk.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"

namespace pipelab {
namespace {

constexpr size_t kWorkOfClock = 4096;  // between two looks at the clock
constexpr size_t kWorkOfSet = 128;     // of a set without edges

}  // namespace

CutWalk::CutWalk(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
                 absl::Time deadline)
    : sets_(sets), deadline_(deadline), edges_of_group_(groups.members.size()) {
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const int from = groups.group_of[problem.edges[e].from];
    const int to = groups.group_of[problem.edges[e].to];
    if (from == to) continue;
    edges_of_group_[from].push_back(static_cast<int>(e));
    edges_of_group_[to].push_back(static_cast<int>(e));
  }
}

bool CutWalk::Next() {
  if (stopped_ || set_ + 1 >= sets_.size()) return false;
  if (work_ >= kWorkOfClock) {
    work_ = 0;
    stopped_ = absl::Now() > deadline_;
    if (stopped_) return false;
  }
  ++set_;
  std::vector<int> edges;
  if (set_ > 0) {
    for (; first_ < sets_.parent(set_); ++first_) edges_of_.pop_front();
    // The group's edges over the parent's cut are inside now, and its others are over the cut.
    const std::vector<int>& below = edges_of_.front();
    const std::vector<int>& own = edges_of_group_[sets_.added(set_)];
    edges.reserve(below.size() + own.size());
    std::set_symmetric_difference(below.begin(), below.end(), own.begin(), own.end(),
                                  std::back_inserter(edges));
    work_ += below.size() + own.size();
  }
  work_ += kWorkOfSet;
  edges_of_.push_back(std::move(edges));
  return true;
}

std::vector<int> SourcesOf(const PlanProblem& problem, const std::vector<int>& edges) {
  std::vector<int> sources;
  sources.reserve(edges.size());
  for (int e : edges) sources.push_back(problem.edges[e].from);
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

}  // namespace pipelab
