#include "pipelines/planners/operator_sets.h"

#include <algorithm>
#include <utility>

#include "pipelines/planners/plan_costs.h"

namespace pipelab {

namespace {

// In everything but memory.
bool NotAbove(const PlanVariant& a, const PlanVariant& b) {
  bool least = a.time <= b.time && a.parameter_bytes <= b.parameter_bytes;
  for (size_t i = 0; i < a.times.size(); ++i) least &= a.times[i].time <= b.times[i].time;
  for (size_t e = 0; e < a.in_sync.size(); ++e) least &= a.in_sync[e] <= b.in_sync[e];
  for (size_t e = 0; e < a.out_sync.size(); ++e) least &= a.out_sync[e] <= b.out_sync[e];
  return least;
}

}  // namespace

OperatorSets::OperatorSets(const PlanProblem& problem, int64_t micro_batch_size)
    : problem_(problem),
      bandwidth_(FlatBandwidth(problem)),
      sizes_(problem.micro_batch_sizes),
      batch_(BatchSamples(problem)) {
  if (micro_batch_size > 0) sizes_ = {micro_batch_size};
  MakeShapes();
  for (const PlanOperator& o : problem.operators) costs_.push_back(CostOf(o));
  in_place_.resize(problem.edges.size());
  out_place_.resize(problem.edges.size());
  for (const PlanOperator& o : problem.operators) {
    for (size_t i = 0; i < o.in_edges.size(); ++i) in_place_[o.in_edges[i]] = static_cast<int>(i);
    for (size_t i = 0; i < o.out_edges.size(); ++i)
      out_place_[o.out_edges[i]] = static_cast<int>(i);
  }
}

void OperatorSets::MakeShapes() {
  const bool fill_units = problem_.levels.size() > 1;
  copies_bandwidth_.resize(problem_.devices + 1);
  places_.resize(num_sizes(), std::vector<int>(problem_.devices + 1, -1));
  StageShape shape;
  for (shape.data = 1; shape.data <= problem_.devices; ++shape.data) {
    if (fill_units && (shape.data & (shape.data - 1)) != 0) continue;
    for (shape.size = 0; shape.size < num_sizes(); ++shape.size) {
      if (!Allows(shape)) continue;
      shapes_.push_back(shape);
      least_scale_ = std::min(least_scale_, CopyScale(shape));
      copies_bandwidth_[shape.data] = CopiesBandwidth(problem_, shape.data);
      const double samples = CopySamples(shape);
      const auto at = std::find(copy_samples_.begin(), copy_samples_.end(), samples);
      places_[shape.size][shape.data] = static_cast<int>(at - copy_samples_.begin());
      if (at == copy_samples_.end()) copy_samples_.push_back(samples);
    }
  }
}

// The time of the problem's samples.
double OperatorSets::VariantTime(const PlanVariant& variant, double samples) const {
  return TimesOfSamples(problem_, variant, samples).time *
         (static_cast<double>(problem_.micro_batch_size) / samples);
}

OperatorSets::OperatorCost OperatorSets::CostOf(const PlanOperator& o) const {
  const std::vector<PlanVariant>& variants = o.variants.at(1);
  const auto least = [&](auto figure) {
    double value = kInfinity;
    for (const PlanVariant& variant : variants) value = std::min(value, figure(variant));
    return value;
  };
  OperatorCost cost;
  for (double samples : copy_samples_) {
    cost.times.push_back(least([&](const auto& w) { return VariantTime(w, samples); }));
  }
  for (size_t e = 0; e < o.in_edges.size(); ++e) {
    cost.in_bytes.push_back(problem_.edges[o.in_edges[e]].bytes +
                            least([&](const auto& w) { return w.in_sync[e]; }));
  }
  for (size_t e = 0; e < o.out_edges.size(); ++e) {
    cost.out_bytes.push_back(problem_.edges[o.out_edges[e]].bytes +
                             least([&](const auto& w) { return w.out_sync[e]; }));
  }
  cost.parameters = least([](const auto& w) { return w.parameter_bytes; });
  cost.in_flight = least([](const auto& w) { return w.in_flight_bytes; });
  cost.fixed = least([](const auto& w) { return w.fixed_bytes; });
  cost.choice = variants.size() > 1;
  for (const PlanVariant& variant : variants) {
    const auto fastest = [&](const PlanVariant& other) { return NotAbove(variant, other); };
    if (!std::all_of(variants.begin(), variants.end(), fastest)) continue;
    cost.has_fastest = true;
    cost.fastest_in_flight = variant.in_flight_bytes;
    cost.fastest_fixed = variant.fixed_bytes;
    break;
  }
  if (variants.size() == 2) AddSaver(variants, &cost);
  return cost;
}

void OperatorSets::AddSaver(const std::vector<PlanVariant>& variants, OperatorCost* cost) const {
  const size_t fast = NotAbove(variants[0], variants[1]) ? 0 : 1;
  const PlanVariant &a = variants[fast], &b = variants[1 - fast];
  cost->saver = NotAbove(a, b) && a.parameter_bytes == b.parameter_bytes &&
                a.in_sync == b.in_sync && a.out_sync == b.out_sync;
  for (double samples : copy_samples_) {
    cost->saver_times.push_back(VariantTime(b, samples) - VariantTime(a, samples));
  }
  cost->saved_in_flight = a.in_flight_bytes - b.in_flight_bytes;
  cost->saved_fixed = a.fixed_bytes - b.fixed_bytes;
}

OperatorSet OperatorSets::Make(const std::vector<int>& operators) const {
  OperatorSet set;
  for (int v : operators) Add(v, &set);
  return set;
}

void OperatorSets::Add(int v, OperatorSet* set) const {
  if (set->operators.empty()) {
    set->times.resize(copy_samples_.size());
    set->has.resize(problem_.size());
  }
  const PlanOperator& o = problem_.operators[v];
  const OperatorCost& cost = costs_[v];
  set->operators.push_back(v);
  set->has[v] = true;
  set->chosen.clear();
  for (size_t i = 0; i < cost.times.size(); ++i) set->times[i] += cost.times[i];
  // Neither end of an edge whose other end is inside is paid for.
  const auto move = [&](bool inside, double here, double there) {
    set->boundary += inside ? -there : here;
    set->boundary_edges += inside ? -1 : 1;
  };
  for (size_t i = 0; i < o.in_edges.size(); ++i) {
    const int e = o.in_edges[i], from = problem_.edges[e].from;
    move(set->has[from], cost.in_bytes[i], costs_[from].out_bytes[out_place_[e]]);
  }
  for (size_t i = 0; i < o.out_edges.size(); ++i) {
    const int e = o.out_edges[i], to = problem_.edges[e].to;
    move(set->has[to], cost.out_bytes[i], costs_[to].in_bytes[in_place_[e]]);
  }
  if (set->boundary_edges == 0) set->boundary = 0;  // not what rounding left
  set->parameters += cost.parameters;
  set->in_flight += cost.in_flight;
  set->fixed += cost.fixed;
  set->choice |= cost.choice;
  if (cost.saver) set->savers.push_back(v);
  set->simple &= !cost.choice || cost.saver;
  set->has_fastest &= cost.has_fastest;
  set->fastest_in_flight += cost.fastest_in_flight;
  set->fastest_fixed += cost.fastest_fixed;
}

double OperatorSets::LeastWork(int v) const {
  double least = kInfinity;
  for (double time : costs_[v].times) least = std::min(least, time);
  return least;
}

double OperatorSets::LeastTime(const OperatorSet& set, int64_t devices) const {
  double least = kInfinity;
  for (const StageShape shape : shapes_) {
    if (shape.data > devices) break;
    least = std::min(least, set.times[Place(shape)] / static_cast<double>(shape.data));
  }
  return least;
}

double OperatorSets::CommunicationTime(double bytes, int edges, double parameters,
                                       StageShape shape) const {
  const auto d = static_cast<double>(shape.data);
  const double sync = 4 * (d - 1) * parameters / d / static_cast<double>(problem_.micro_batches);
  const double time = 2 * bytes / d / bandwidth_ + sync / copies_bandwidth_[shape.data];
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

double OperatorSets::QuickTime(OperatorSet* set, StageShape shape, int64_t in_flight) const {
  if (!set->choice || !set->simple) return Time(set, shape, in_flight);
  if (!Fits(set->in_flight, set->fixed, shape, in_flight)) return kInfinity;
  const double scale = CopyScale(shape) * static_cast<double>(in_flight);
  double over = set->fastest_in_flight * scale + set->fastest_fixed - problem_.memory_bytes;
  const double time = TimeBound(*set, shape);
  if (over <= 0) return time;
  struct Saver {
    double time, bytes;
  };
  std::vector<Saver> savers;
  for (int v : set->savers) {
    const OperatorCost& cost = costs_[v];
    const double bytes = cost.saved_in_flight * scale + cost.saved_fixed;
    if (bytes > 0) savers.push_back({cost.saver_times[Place(shape)], bytes});
  }
  std::sort(savers.begin(), savers.end(),
            [](const Saver& a, const Saver& b) { return a.time * b.bytes < b.time * a.bytes; });
  double more = 0;
  for (size_t i = 0; i < savers.size() && over > 0; ++i) {
    // The last that is needed may be a cheaper one.
    Saver taken = savers[i];
    if (taken.bytes >= over) {
      for (size_t j = i + 1; j < savers.size(); ++j) {
        if (savers[j].bytes >= over && savers[j].time < taken.time) taken = savers[j];
      }
    }
    more += taken.time;
    over -= taken.bytes;
  }
  return over > 0 ? kInfinity : time + more / static_cast<double>(shape.data);
}

std::vector<VariantCost> OperatorSets::VariantCostsOf(const OperatorSet& set, int v,
                                                      StageShape shape, int64_t in_flight) const {
  const PlanOperator& o = problem_.operators[v];
  std::vector<VariantCost> costs;
  for (const PlanVariant& variant : o.variants.at(1)) {
    double boundary = 0;
    int edges = 0;
    for (size_t e = 0; e < o.in_edges.size(); ++e) {
      const PlanEdge& edge = problem_.edges[o.in_edges[e]];
      if (set.has[edge.from]) continue;
      boundary += edge.bytes + variant.in_sync[e];
      ++edges;
    }
    for (size_t e = 0; e < o.out_edges.size(); ++e) {
      const PlanEdge& edge = problem_.edges[o.out_edges[e]];
      if (set.has[edge.to]) continue;
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
  // Sums in another order may differ in their last digits.
  choice.variants = SelectVariants(costs, problem_.memory_bytes * (1 + 1e-12));
  choice.time = choice.variants.empty() ? kInfinity : 0;
  for (size_t i = 0; i < choice.variants.size(); ++i) {
    choice.time += costs[i][choice.variants[i]].time;
  }
  return choice;
}

PlanStage OperatorSets::StageOf(const OperatorSet& set, StageShape shape, int64_t in_flight) const {
  PlanStage stage;
  stage.data = shape.data;
  stage.micro_batch_size = SamplesOf(shape);
  const std::vector<int> variants = Choose(set, shape, in_flight).variants;
  std::vector<std::pair<int, int>> members;
  for (size_t i = 0; i < variants.size(); ++i) members.emplace_back(set.operators[i], variants[i]);
  std::sort(members.begin(), members.end());
  for (const auto& [v, variant] : members) {
    stage.layers.push_back(v);
    stage.variants.push_back(variant);
  }
  return stage;
}

}  // namespace pipelab
