#include "pipelines/planners/plan_groups.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "glog/logging.h"
#include "pipelines/planners/downsets.h"

namespace pipelab {
namespace {

struct Join {
  std::vector<int> of;  // [group] its new group
  int size = 0;         // so many new groups
  bool whole = true;    // each path is one of them
};

// The groups as operators of their own, joined.
OperatorGroups Joined(const OperatorGroups& groups, const Join& join) {
  std::vector<std::vector<int>> members(join.size);
  std::vector<std::pair<int, int>> edges;
  for (size_t g = 0; g < groups.members.size(); ++g) {
    std::vector<int>& joined = members[join.of[g]];
    joined.insert(joined.end(), groups.members[g].begin(), groups.members[g].end());
    for (int h : groups.followers[g]) {
      edges.emplace_back(groups.members[g][0], groups.members[h][0]);
    }
  }
  return MakeGroups(std::move(members), static_cast<int>(groups.group_of.size()), edges);
}

// At most `most` groups of a path become one.
Join JoinPaths(const OperatorGroups& groups, int most) {
  const size_t n = groups.members.size();
  std::vector<int> predecessors(n), length;
  for (const auto& followers : groups.followers) {
    for (int h : followers) ++predecessors[h];
  }
  Join join;
  join.of.resize(n, -1);
  for (size_t g = 0; g < n; ++g) {
    if (join.of[g] < 0) {
      join.of[g] = static_cast<int>(length.size());
      length.push_back(1);
    }
    if (groups.followers[g].size() != 1) continue;
    const int next = groups.followers[g][0];
    if (predecessors[next] != 1) continue;
    if (length[join.of[g]] >= most) {
      join.whole = false;
      continue;
    }
    join.of[next] = join.of[g];
    ++length[join.of[g]];
  }
  join.size = static_cast<int>(length.size());
  return join;
}

}  // namespace

OperatorGroups MakeGroups(std::vector<std::vector<int>> members, int num_operators,
                          const std::vector<std::pair<int, int>>& edges) {
  const int n = static_cast<int>(members.size());
  std::vector<int> of(num_operators, -1), missing(n);
  for (int g = 0; g < n; ++g) {
    for (int v : members[g]) of[v] = g;
  }
  std::vector<std::vector<int>> followers(n);
  for (const auto& [from, to] : edges) {
    if (of[from] != of[to]) followers[of[from]].push_back(of[to]);
  }
  for (auto& f : followers) {
    std::sort(f.begin(), f.end());
    f.erase(std::unique(f.begin(), f.end()), f.end());
    for (int h : f) ++missing[h];
  }
  OperatorGroups groups;
  groups.group_of.resize(num_operators, -1);
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int g = 0; g < n; ++g) {
    if (missing[g] == 0) ready.push(g);
  }
  std::vector<int> place(n, -1);
  std::vector<int> order;
  while (!ready.empty()) {
    const int g = ready.top();
    ready.pop();
    place[g] = static_cast<int>(order.size());
    order.push_back(g);
    for (int h : followers[g]) {
      if (--missing[h] == 0) ready.push(h);
    }
  }
  CHECK_EQ(static_cast<int>(order.size()), n) << "groups need one another";
  for (int g : order) {
    for (int v : members[g]) groups.group_of[v] = place[g];
    groups.members.push_back(std::move(members[g]));
    for (int& h : followers[g]) h = place[h];
    std::sort(followers[g].begin(), followers[g].end());
    groups.followers.push_back(std::move(followers[g]));
  }
  return groups;
}

OperatorGroups SingleGroups(const PlanProblem& problem) {
  std::vector<std::vector<int>> members;
  std::vector<std::pair<int, int>> edges;
  for (int v = 0; v < problem.size(); ++v) members.push_back({v});
  for (const PlanEdge& edge : problem.edges) edges.emplace_back(edge.from, edge.to);
  return MakeGroups(std::move(members), problem.size(), edges);
}

OperatorGroups CoarserGroups(const OperatorGroups& groups, int limit) {
  const int n = static_cast<int>(groups.members.size());
  for (int most = 1; most < 2 * n; most += (most + 3) / 4) {
    const Join join = JoinPaths(groups, most);
    if (join.size < limit) {  // there are more sets than groups
      OperatorGroups coarser = Joined(groups, join);
      if (Downsets::Make(coarser.followers, limit).has_value()) return coarser;
    }
    if (join.whole) break;
  }
  OperatorGroups line = groups;
  for (int g = 0; g < n; ++g) {
    line.followers[g].clear();
    if (g + 1 < n) line.followers[g].push_back(g + 1);
  }
  if (n + 1 <= limit) return line;
  return Joined(line, JoinPaths(line, (n + limit - 2) / (limit - 1) + 1));
}

}  // namespace pipelab
