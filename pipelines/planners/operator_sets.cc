#include "pipelines/planners/operator_sets.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "pipelines/planners/plan_costs.h"

namespace pipelab {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

OperatorSets::OperatorSets(const PlanProblem& problem, int64_t micro_batch_size)
    : problem_(problem),
      bandwidth_(FlatBandwidth(problem)),
      sizes_(problem.micro_batch_sizes),
      batch_(BatchSamples(problem)) {
  if (micro_batch_size > 0) sizes_ = {micro_batch_size};
  while (most_copies_ * 2 <= problem.devices) most_copies_ *= 2;
  for (int64_t copies = 1; copies <= most_copies_; copies *= 2) {
    copies_bandwidth_.push_back(CopiesBandwidth(problem, copies));
  }
  places_.resize(num_sizes());
  for (StageShape shape; shape.size < num_sizes(); ++shape.size) {
    for (shape.data = 1; shape.data <= most_copies_; shape.data *= 2) {
      places_[shape.size].push_back(-1);
      if (!Allows(shape)) continue;
      const double samples = CopySamples(shape);
      const auto at = std::find(copy_samples_.begin(), copy_samples_.end(), samples);
      places_[shape.size].back() = static_cast<int>(at - copy_samples_.begin());
      if (at == copy_samples_.end()) copy_samples_.push_back(samples);
    }
  }
}

// Of the problem's samples.
double OperatorSets::VariantTime(const PlanVariant& variant, double samples) const {
  return TimesOfSamples(problem_, variant, samples).time *
         (static_cast<double>(problem_.micro_batch_size) / samples);
}

OperatorSet OperatorSets::Make(std::vector<int> operators) const {
  OperatorSet set;
  set.operators = std::move(operators);
  std::sort(set.operators.begin(), set.operators.end());
  set.times.resize(copy_samples_.size());
  const auto inside = [&](int v) {
    return std::binary_search(set.operators.begin(), set.operators.end(), v);
  };
  for (int v : set.operators) {
    const PlanOperator& o = problem_.operators[v];
    const std::vector<PlanVariant>& variants = o.variants.at(1);
    const auto least = [&](auto figure) {
      double value = kInfinity;
      for (const PlanVariant& variant : variants) value = std::min(value, figure(variant));
      return value;
    };
    for (size_t i = 0; i < copy_samples_.size(); ++i) {
      set.times[i] += least([&](const auto& w) { return VariantTime(w, copy_samples_[i]); });
    }
    for (size_t e = 0; e < o.in_edges.size(); ++e) {
      const PlanEdge& edge = problem_.edges[o.in_edges[e]];
      if (inside(edge.from)) continue;
      set.boundary += edge.bytes + least([&](const auto& w) { return w.in_sync[e]; });
      ++set.boundary_edges;
    }
    for (size_t e = 0; e < o.out_edges.size(); ++e) {
      const PlanEdge& edge = problem_.edges[o.out_edges[e]];
      if (inside(edge.to)) continue;
      set.boundary += edge.bytes + least([&](const auto& w) { return w.out_sync[e]; });
      ++set.boundary_edges;
    }
    set.parameters += least([](const auto& w) { return w.parameter_bytes; });
    set.in_flight += least([](const auto& w) { return w.in_flight_bytes; });
    set.fixed += least([](const auto& w) { return w.fixed_bytes; });
    set.choice |= variants.size() > 1;
    AddFastest(o, &set);
  }
  return set;
}

void OperatorSets::AddFastest(const PlanOperator& o, OperatorSet* set) const {
  const std::vector<PlanVariant>& variants = o.variants.at(1);
  const auto not_above = [&](const PlanVariant& a, const PlanVariant& b) {
    bool least = a.time <= b.time && a.parameter_bytes <= b.parameter_bytes;
    for (size_t i = 0; i < a.times.size(); ++i) least &= a.times[i].time <= b.times[i].time;
    for (size_t e = 0; e < a.in_sync.size(); ++e) least &= a.in_sync[e] <= b.in_sync[e];
    for (size_t e = 0; e < a.out_sync.size(); ++e) least &= a.out_sync[e] <= b.out_sync[e];
    return least;
  };
  for (const PlanVariant& variant : variants) {
    if (!std::all_of(variants.begin(), variants.end(),
                     [&](const PlanVariant& other) { return not_above(variant, other); })) {
      continue;
    }
    set->fastest_in_flight += variant.in_flight_bytes;
    set->fastest_fixed += variant.fixed_bytes;
    return;
  }
  set->has_fastest = false;
}

double OperatorSets::LeastWork(const OperatorSet& set) const {
  double least = kInfinity;
  for (double time : set.times) least = std::min(least, time);
  return least;
}

double OperatorSets::LeastTime(const OperatorSet& set) const {
  double least = kInfinity;
  for (StageShape shape; shape.size < num_sizes(); ++shape.size) {
    for (shape.data = 1; shape.data <= most_copies_; shape.data *= 2) {
      if (Place(shape) < 0) continue;
      least = std::min(least, set.times[Place(shape)] / static_cast<double>(shape.data));
    }
  }
  return least;
}

double OperatorSets::CommunicationTime(double bytes, int edges, double parameters,
                                       StageShape shape) const {
  const auto d = static_cast<double>(shape.data);
  const double sync = 4 * (d - 1) * parameters / d / static_cast<double>(problem_.micro_batches);
  const double time = 2 * bytes / d / bandwidth_ + sync / copies_bandwidth_[LogCopies(shape)];
  if (problem_.latency == 0) return time;
  return time + 2 * edges * problem_.latency * static_cast<double>(problem_.micro_batch_size) /
                    static_cast<double>(SamplesOf(shape));
}

double OperatorSets::TimeBound(const OperatorSet& set, StageShape shape) const {
  return set.times[Place(shape)] / static_cast<double>(shape.data) +
         CommunicationTime(set.boundary, set.boundary_edges, set.parameters, shape);
}

double OperatorSets::Time(OperatorSet* set, StageShape shape, int64_t in_flight) const {
  if (!Fits(set->in_flight, set->fixed, shape, in_flight)) return kInfinity;
  if (!set->choice ||
      (set->has_fastest && Fits(set->fastest_in_flight, set->fastest_fixed, shape, in_flight))) {
    return TimeBound(*set, shape);
  }
  const auto [it, added] = set->chosen.try_emplace({shape.data, shape.size, in_flight});
  if (added) it->second = Choose(*set, shape, in_flight);
  return it->second.time;
}

std::vector<VariantCost> OperatorSets::VariantCostsOf(const OperatorSet& set, int v,
                                                      StageShape shape, int64_t in_flight) const {
  const PlanOperator& o = problem_.operators[v];
  const auto inside = [&](int other) {
    return std::binary_search(set.operators.begin(), set.operators.end(), other);
  };
  std::vector<VariantCost> costs;
  for (const PlanVariant& variant : o.variants.at(1)) {
    double boundary = 0;
    int edges = 0;
    for (size_t e = 0; e < o.in_edges.size(); ++e) {
      const PlanEdge& edge = problem_.edges[o.in_edges[e]];
      if (inside(edge.from)) continue;
      boundary += edge.bytes + variant.in_sync[e];
      ++edges;
    }
    for (size_t e = 0; e < o.out_edges.size(); ++e) {
      const PlanEdge& edge = problem_.edges[o.out_edges[e]];
      if (inside(edge.to)) continue;
      boundary += edge.bytes + variant.out_sync[e];
      ++edges;
    }
    VariantCost cost;
    cost.time = VariantTime(variant, CopySamples(shape)) / static_cast<double>(shape.data) +
                CommunicationTime(boundary, edges, variant.parameter_bytes, shape);
    cost.bytes = variant.in_flight_bytes * CopyScale(shape) * static_cast<double>(in_flight) +
                 variant.fixed_bytes;
    costs.push_back(cost);
  }
  return costs;
}

StageChoice OperatorSets::Choose(const OperatorSet& set, StageShape shape,
                                 int64_t in_flight) const {
  std::vector<std::vector<VariantCost>> costs;
  for (int v : set.operators) costs.push_back(VariantCostsOf(set, v, shape, in_flight));
  StageChoice choice;
  choice.variants = SelectVariants(costs, problem_.memory_bytes);
  choice.time = choice.variants.empty() ? kInfinity : 0;
  for (size_t i = 0; i < choice.variants.size(); ++i) {
    choice.time += costs[i][choice.variants[i]].time;
  }
  return choice;
}

}  // namespace pipelab
