#include "pipelines/planners/graph_regions.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pipelab {
namespace {

absl::Hex Bits(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return absl::Hex(bits);
}

// Every figure of an operator that a plan's cost depends on, to the bit.
void AppendFigures(const PlanOperator& o, std::string* text) {
  const auto add = [&](double x) { absl::StrAppend(text, Bits(x), ","); };
  for (const PlanVariant& v : o.variants.at(1)) {
    for (double x : {v.time, v.parameter_bytes, v.in_flight_bytes, v.fixed_bytes}) add(x);
    for (const PlanTimes& x : v.times) add(x.time);
    for (double x : v.in_sync) add(x);
    for (double x : v.out_sync) add(x);
    absl::StrAppend(text, "|");
  }
}

}  // namespace

GraphRegions::GraphRegions(const PlanProblem& problem) : problem_(problem) {
  std::vector<std::vector<int>> needs(problem.size());
  for (const PlanEdge& edge : problem.edges) needs[edge.to].push_back(edge.from);
  const SeriesParallel tree = SeriesParallelOf(needs);
  added_orders_ = tree.added_orders;
  root_ = Add(tree.root);
}

int GraphRegions::Add(const SeriesParallelNode& node) {
  Region region;
  if (node.kind == SeriesParallelNode::Kind::kSeries) {
    for (const SeriesParallelNode& child : node.children) {
      region.elements.push_back(ElementOf(child));
    }
  } else {
    region.elements.push_back(ElementOf(node));
  }
  for (const RegionElement& element : region.elements) {
    region.begin.push_back(static_cast<int>(region.operators.size()));
    if (element.op >= 0) region.operators.push_back(element.op);
    for (int b : element.branches) {
      const std::vector<int>& operators = regions_[b].operators;
      region.operators.insert(region.operators.end(), operators.begin(), operators.end());
    }
  }
  region.begin.push_back(static_cast<int>(region.operators.size()));
  for (int v : region.operators) region.work += problem_.operators[v].variants.at(1)[0].time;
  const int index = static_cast<int>(regions_.size());
  const auto [it, added] = types_.emplace(Signature(region), static_cast<int>(types_.size()));
  if (added) representatives_.push_back(index);
  region.type = it->second;
  regions_.push_back(std::move(region));
  return index;
}

RegionElement GraphRegions::ElementOf(const SeriesParallelNode& node) {
  RegionElement element;
  element.op = node.node;
  for (const SeriesParallelNode& child : node.children) element.branches.push_back(Add(child));
  const auto key = [&](int r) {
    const Region& region = regions_[r];
    return std::make_tuple(region.work, region.operators.size(), Shape(region),
                           region.operators[0]);
  };
  std::sort(element.branches.begin(), element.branches.end(),
            [&](int a, int b) { return key(a) < key(b); });
  return element;
}

std::string GraphRegions::Shape(const Region& region) const {
  std::string text;
  for (const RegionElement& element : region.elements) {
    absl::StrAppend(&text, element.op >= 0 ? "o" : "(");
    for (int b : element.branches) absl::StrAppend(&text, Shape(regions_[b]), "/");
    if (element.op < 0) absl::StrAppend(&text, ")");
  }
  return text;
}

// Edges inside go by place, edges out of the region by the operator at the other end.
std::string GraphRegions::Signature(const Region& region) const {
  std::map<int, size_t> place;
  for (size_t i = 0; i < region.operators.size(); ++i) place[region.operators[i]] = i;
  std::string text = Shape(region);
  const auto add_edge = [&](int other, double bytes) {
    const auto it = place.find(other);
    absl::StrAppend(&text, it == place.end() ? "x" : "i", it == place.end() ? other : it->second,
                    ":", Bits(bytes), ",");
  };
  for (int v : region.operators) {
    const PlanOperator& o = problem_.operators[v];
    absl::StrAppend(&text, ";");
    AppendFigures(o, &text);
    for (int e : o.in_edges) add_edge(problem_.edges[e].from, problem_.edges[e].bytes);
    absl::StrAppend(&text, ">");
    for (int e : o.out_edges) add_edge(problem_.edges[e].to, problem_.edges[e].bytes);
  }
  return text;
}

}  // namespace pipelab
