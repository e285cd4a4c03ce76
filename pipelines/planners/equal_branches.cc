#include "pipelines/planners/equal_branches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "absl/strings/str_format.h"
#include "pipelines/planners/cut_walk.h"

namespace pipelab {
namespace {

// [operator] Whether every other one comes before it or after it: in topological order each of
// those before it has an edge to it or to one before it, and each of those after it likewise.
std::vector<bool> BesideNone(const PlanProblem& problem, const std::vector<int>& order) {
  const int n = problem.size();
  std::vector<int> place(n);
  for (int i = 0; i < n; ++i) place[order[i]] = i;
  // [place] Where its nearest edges lead.
  std::vector<int> next(n, n), last(n, -1);
  for (const PlanEdge& edge : problem.edges) {
    const int from = place[edge.from], to = place[edge.to];
    next[from] = std::min(next[from], to);
    last[to] = std::max(last[to], from);
  }
  std::vector<bool> none(n);
  for (int i = 0, farthest = 0; i < n; ++i) {
    none[order[i]] = farthest <= i;
    farthest = std::max(farthest, next[i]);
  }
  for (int i = n - 1, farthest = n; i >= 0; --i) {
    none[order[i]] = none[order[i]] && farthest >= i;
    farthest = std::min(farthest, last[i]);
  }
  return none;
}

// What is left without the operators beside none, in parts that no edge joins; each in topological
// order.
std::vector<std::vector<int>> Parts(const PlanProblem& problem, const std::vector<int>& order) {
  const std::vector<bool> none = BesideNone(problem, order);
  std::vector<int> part(problem.size());
  std::iota(part.begin(), part.end(), 0);
  const auto root = [&](int v) {
    while (part[v] != v) v = part[v] = part[part[v]];
    return v;
  };
  for (const PlanEdge& edge : problem.edges) {
    if (!none[edge.from] && !none[edge.to]) part[root(edge.from)] = root(edge.to);
  }
  std::map<int, std::vector<int>> operators;
  for (int v : order) {
    if (!none[v]) operators[root(v)].push_back(v);
  }
  std::vector<std::vector<int>> parts;
  parts.reserve(operators.size());
  for (auto& [r, part_operators] : operators) parts.push_back(std::move(part_operators));
  return parts;
}

// Whether each operator's only edges inside go to the next one.
bool IsLine(const PlanProblem& problem, const std::vector<int>& operators) {
  std::map<int, size_t> place;
  for (size_t i = 0; i < operators.size(); ++i) place[operators[i]] = i;
  for (size_t i = 0; i < operators.size(); ++i) {
    size_t inside = 0;
    for (int e : problem.operators[operators[i]].out_edges) {
      const auto to = place.find(problem.edges[e].to);
      if (to == place.end()) continue;
      if (to->second != i + 1) return false;
      ++inside;
    }
    if (inside != (i + 1 < operators.size() ? 1 : 0)) return false;
  }
  return true;
}

void AppendNumbers(const std::vector<double>& numbers, std::string* text) {
  for (double number : numbers) absl::StrAppendFormat(text, " %.17g", number);
}

// What tensor parallelism adds to the edge at the operator outside of the branch.
void AppendSync(const PlanOperator& outside, int edge, std::string* text) {
  const auto in = std::find(outside.in_edges.begin(), outside.in_edges.end(), edge);
  const auto out = std::find(outside.out_edges.begin(), outside.out_edges.end(), edge);
  for (const auto& [degree, variants] : outside.variants) {
    for (const PlanVariant& variant : variants) {
      AppendNumbers(
          {in != outside.in_edges.end() ? variant.in_sync[in - outside.in_edges.begin()]
                                        : variant.out_sync[out - outside.out_edges.begin()]},
          text);
    }
  }
}

// All that a planner knows of a branch.
std::string Description(const PlanProblem& problem, const std::vector<int>& operators) {
  std::map<int, int> place;
  for (int v : operators) place.emplace(v, static_cast<int>(place.size()));
  std::string text;
  const auto append_edge = [&](int edge, int other) {
    AppendNumbers({problem.edges[edge].bytes}, &text);
    const auto inside = place.find(other);
    if (inside != place.end()) {
      absl::StrAppendFormat(&text, " #%d", inside->second);
    } else {
      absl::StrAppendFormat(&text, " %d", other);
      AppendSync(problem.operators[other], edge, &text);
    }
  };
  for (int v : operators) {
    const PlanOperator& o = problem.operators[v];
    absl::StrAppendFormat(&text, "\n%.17g", o.output_bytes);
    for (int e : o.in_edges) append_edge(e, problem.edges[e].from);
    text += " ->";
    for (int e : o.out_edges) append_edge(e, problem.edges[e].to);
    for (const auto& [degree, variants] : o.variants) {
      for (const PlanVariant& variant : variants) {
        absl::StrAppendFormat(&text, " x%d %s %d", degree, variant.name, variant.recompute);
        AppendNumbers({variant.time, variant.forward_time, variant.parameter_bytes,
                       variant.in_flight_bytes, variant.fixed_bytes},
                      &text);
        AppendNumbers(variant.in_sync, &text);
        AppendNumbers(variant.out_sync, &text);
        for (const PlanTimes& times : variant.times) {
          AppendNumbers({times.forward, times.time}, &text);
        }
      }
    }
  }
  return text;
}

// [branch] `lengths` in an order in which those stay that are there in `taken`; of the others the
// longest become the longest.
std::vector<size_t> Matched(std::vector<size_t> lengths, const std::vector<size_t>& taken) {
  std::vector<size_t> matched = taken, changed;
  for (size_t b = 0; b < taken.size(); ++b) {
    const auto same = std::find(lengths.begin(), lengths.end(), taken[b]);
    if (same == lengths.end()) {
      changed.push_back(b);
    } else {
      lengths.erase(same);
    }
  }
  std::sort(lengths.begin(), lengths.end());
  std::stable_sort(changed.begin(), changed.end(),
                   [&](size_t a, size_t b) { return taken[a] < taken[b]; });
  for (size_t c = 0; c < changed.size(); ++c) matched[changed[c]] = lengths[c];
  return matched;
}

}  // namespace

EqualBranches::EqualBranches(const PlanProblem& problem) : problem_(problem) {
  std::map<std::string, std::vector<Branch>> alike;
  for (const std::vector<int>& part : Parts(problem, TopologicalOrder(problem))) {
    if (IsLine(problem, part)) alike[Description(problem, part)].push_back(part);
  }
  for (auto& [description, branches] : alike) {
    if (branches.size() > 1) classes_.push_back(std::move(branches));
  }
}

std::vector<std::vector<int>> EqualBranches::InOrder(const OperatorGroups& groups) const {
  std::vector<std::vector<int>> followers = groups.followers;
  for (const std::vector<Branch>& branches : classes_) {
    for (size_t b = 1; b < branches.size(); ++b) {
      for (size_t i = 0; i < branches[b].size(); ++i) {
        followers[groups.group_of[branches[b][i]]].push_back(groups.group_of[branches[b - 1][i]]);
      }
    }
  }
  return followers;
}

std::vector<int> EqualBranches::EdgeClasses() const {
  std::vector<int> same_as(problem_.size());
  std::iota(same_as.begin(), same_as.end(), 0);
  for (const std::vector<Branch>& branches : classes_) {
    for (const Branch& branch : branches) {
      for (size_t i = 0; i < branch.size(); ++i) same_as[branch[i]] = branches[0][i];
    }
  }
  std::vector<int> edge_class;
  std::map<std::tuple<int, int, double>, int> known;
  for (const PlanEdge& edge : problem_.edges) {
    const auto key = std::make_tuple(same_as[edge.from], same_as[edge.to], edge.bytes);
    edge_class.push_back(known.emplace(key, static_cast<int>(known.size())).first->second);
  }
  return edge_class;
}

void EqualBranches::Rearrange(std::vector<PlanStage>* stages) const {
  for (const std::vector<Branch>& branches : classes_) RearrangeClass(branches, stages);
}

// From the last stage on: of each branch so many operators are in stages.
void EqualBranches::RearrangeClass(const std::vector<Branch>& branches,
                                   std::vector<PlanStage>* stages) const {
  const size_t count = branches.size(), length = branches[0].size();
  std::vector<std::pair<int, int>> place(problem_.size(), {-1, -1});  // branch, from its end
  for (size_t b = 0; b < count; ++b) {
    for (size_t i = 0; i < length; ++i) {
      place[branches[b][i]] = {static_cast<int>(b), static_cast<int>(length - 1 - i)};
    }
  }
  std::vector<size_t> given(count), taken(count);
  for (auto stage = stages->rbegin(); stage != stages->rend(); ++stage) {
    std::vector<std::pair<int, int>> run;  // operator, variant
    std::vector<std::vector<int>> variants(length);
    for (size_t i = 0; i < stage->layers.size(); ++i) {
      const auto [branch, from_end] = place[stage->layers[i]];
      if (branch < 0) {
        run.emplace_back(stage->layers[i], stage->variants[i]);
        continue;
      }
      ++given[branch];
      variants[from_end].push_back(stage->variants[i]);
    }
    const std::vector<size_t> wanted = Matched(given, taken);
    for (size_t b = 0; b < count; ++b) {
      for (size_t& i = taken[b]; i < wanted[b]; ++i) {
        run.emplace_back(branches[b][length - 1 - i], variants[i].back());
        variants[i].pop_back();
      }
    }
    std::sort(run.begin(), run.end());
    stage->layers.clear();
    stage->variants.clear();
    for (const auto& [v, variant] : run) {
      stage->layers.push_back(v);
      stage->variants.push_back(variant);
    }
  }
}

CutEdges::CutEdges(const PlanProblem& problem, const OperatorGroups& groups, const Downsets& sets,
                   const std::vector<int>& edge_class, absl::Time deadline) {
  begin_.push_back(0);
  CutWalk walk(problem, groups, sets, deadline);
  std::vector<int> classes;
  while (walk.Next()) {
    classes.clear();
    for (int e : walk.edges()) classes.push_back(edge_class[e]);
    std::sort(classes.begin(), classes.end());
    for (int c : classes) {
      if (counts_.size() == begin_.back() || counts_.back().edge_class != c) {
        counts_.push_back({c, 0});
      }
      ++counts_.back().edges;
    }
    begin_.push_back(counts_.size());
  }
  stopped_ = walk.stopped();
  begin_.resize(sets.size() + 1, counts_.size());
}

}  // namespace pipelab
