#include "pipelines/planners/piper_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "pipelines/planners/cut_walk.h"

namespace pipelab {
namespace {

// Sums of doubles differ in their last digits.
constexpr double kRoom = 1 + 1e-12;

bool NeverBetter(const PlanVariant& a, const PlanVariant& b) {
  return a.time >= b.time && a.in_flight_bytes >= b.in_flight_bytes &&
         a.fixed_bytes >= b.fixed_bytes;
}

// Variants of which none is beaten by another in everything; the fastest first.
std::vector<const PlanVariant*> Useful(const std::vector<PlanVariant>& variants) {
  std::vector<const PlanVariant*> useful;
  for (size_t i = 0; i < variants.size(); ++i) {
    bool beaten = false;
    for (size_t j = 0; j < variants.size() && !beaten; ++j) {
      beaten = i != j && NeverBetter(variants[i], variants[j]) &&
               (!NeverBetter(variants[j], variants[i]) || j < i);
    }
    if (!beaten) useful.push_back(&variants[i]);
  }
  std::stable_sort(useful.begin(), useful.end(),
                   [](const auto* a, const auto* b) { return a->time < b->time; });
  return useful;
}

bool OneClass(const uint16_t* counts, const uint16_t* below, size_t classes, int mode) {
  for (size_t m = 0; m < classes; ++m) {
    if (static_cast<int>(m) != mode && counts[m] != below[m]) return false;
  }
  return true;
}

bool SameButMemory(const std::vector<PlanVariant>& variants) {
  return std::all_of(variants.begin(), variants.end(), [&](const PlanVariant& v) {
    return v.parameter_bytes == variants[0].parameter_bytes && v.in_sync == variants[0].in_sync &&
           v.out_sync == variants[0].out_sync;
  });
}

}  // namespace

double LeastDeviceTime(const PlanOperator& o) {
  double least = kInfinity;
  for (const auto& [degree, variants] : o.variants) {
    for (const PlanVariant& variant : variants) least = std::min(least, degree * variant.time);
  }
  return least;
}

PiperCosts::PiperCosts(const PlanProblem& problem, const OperatorGroups& groups,
                       const Downsets& sets, const EqualBranches* equal, absl::Time deadline)
    : problem_(problem),
      groups_(groups),
      sets_(sets),
      equal_(equal),
      room_(problem.memory_bytes * kRoom) {
  for (int64_t d = 1; d <= std::min(problem.devices, problem.micro_batches); ++d) {
    if (problem.micro_batches % d == 0) copies_.push_back(static_cast<int>(d));
  }
  FindDegrees();
  AddOperators();
  AddCuts(deadline);
}

void PiperCosts::FindDegrees() {
  std::set<int> degrees;
  for (const PlanOperator& o : problem_.operators) {
    for (const auto& [degree, variants] : o.variants) {
      if (degree <= problem_.devices) degrees.insert(degree);
      if (!SameButMemory(variants) || Useful(variants).size() > 2) uniform_ = false;
    }
  }
  degrees_.assign(degrees.begin(), degrees.end());
}

const PlanVariant& PiperCosts::Fastest(int v, int degree) const {
  return *Useful(problem_.operators[v].variants.at(degree)).front();
}

void PiperCosts::AddOperators() {
  sums_.assign(degrees_.size(), std::vector<Sums>(sets_.size()));
  modes_.resize(degrees_.size());
  mode_counts_.resize(degrees_.size());
  savings_.resize(degrees_.size());
  for (int t = 0; t < static_cast<int>(degrees_.size()); ++t) {
    std::vector<int> slow_of(problem_.size(), -1);
    const std::vector<Sums> of_group = SumsOfGroups(t, &slow_of);
    for (int u = 1; u < sets_.size(); ++u) {
      const Sums &below = sums_[t][sets_.parent(u)], &more = of_group[sets_.added(u)];
      Sums& sums = sums_[t][u];
      sums.time = below.time + more.time;
      sums.sync = below.sync + more.sync;
      sums.in_flight_bytes = below.in_flight_bytes + more.in_flight_bytes;
      sums.fixed_bytes = below.fixed_bytes + more.fixed_bytes;
      sums.in_flight_savings = below.in_flight_savings + more.in_flight_savings;
      sums.fixed_savings = below.fixed_savings + more.fixed_savings;
      sums.lacking = below.lacking + more.lacking;
    }
    SetSlowModes(t, slow_of);
  }
  AddWork();
}

std::vector<PiperCosts::Sums> PiperCosts::SumsOfGroups(int t, std::vector<int>* slow_of) {
  const double sync_per_byte = 4 / static_cast<double>(problem_.micro_batches) / problem_.bandwidth;
  std::vector<Sums> of_group(groups_.members.size());
  std::map<std::tuple<double, double, double>, int> classes;
  for (int v = 0; v < problem_.size(); ++v) {
    Sums& sums = of_group[groups_.group_of[v]];
    const auto variants = problem_.operators[v].variants.find(degrees_[t]);
    if (variants == problem_.operators[v].variants.end()) {
      ++sums.lacking;
      continue;
    }
    const auto useful = Useful(variants->second);
    const PlanVariant& fastest = *useful[0];
    sums.time += fastest.time;
    sums.sync += fastest.parameter_bytes * sync_per_byte;
    sums.in_flight_bytes += fastest.in_flight_bytes;
    sums.fixed_bytes += fastest.fixed_bytes;
    if (useful.size() < 2) continue;
    const SlowMode mode = {useful[1]->time - fastest.time,
                           useful[1]->in_flight_bytes - fastest.in_flight_bytes,
                           useful[1]->fixed_bytes - fastest.fixed_bytes};
    sums.in_flight_savings += std::max(-mode.in_flight_bytes, 0.0);
    sums.fixed_savings += std::max(-mode.fixed_bytes, 0.0);
    const auto added = classes.emplace(
        std::make_tuple(mode.time, mode.in_flight_bytes, mode.fixed_bytes), classes.size());
    if (added.second) modes_[t].push_back(mode);
    (*slow_of)[v] = added.first->second;
  }
  return of_group;
}

void PiperCosts::AddWork() {
  work_.assign(sets_.size(), 0);
  for (int u = 1; u < sets_.size(); ++u) {
    double more = 0;
    for (int v : groups_.members[sets_.added(u)]) {
      more += LeastDeviceTime(problem_.operators[v]);
    }
    work_[u] = work_[sets_.parent(u)] + more;
  }
}

void PiperCosts::SetSlowModes(int t, const std::vector<int>& slow_of) {
  const size_t classes = modes_[t].size();
  if (classes == 0) return;  // nothing recomputes
  mode_counts_[t].assign(classes * sets_.size(), 0);
  for (int u = 1; u < sets_.size(); ++u) {
    uint16_t* counts = &mode_counts_[t][u * classes];
    std::copy_n(&mode_counts_[t][sets_.parent(u) * classes], classes, counts);
    for (int v : groups_.members[sets_.added(u)]) {
      if (slow_of[v] >= 0) ++counts[slow_of[v]];
    }
  }
}

void PiperCosts::AddCuts(absl::Time deadline) {
  // [t][edge] What the stage of the source and that of the target pay where the edge is cut.
  const double time_per_byte = 2 / problem_.bandwidth;
  const size_t edges = problem_.edges.size();
  std::vector<std::vector<double>> source_pays(degrees_.size(), std::vector<double>(edges)),
      target_pays = source_pays;
  std::vector<double> least_pays(edges, kInfinity);  // the source
  for (const PlanOperator& o : problem_.operators) {
    for (size_t t = 0; t < degrees_.size(); ++t) {
      const auto variants = o.variants.find(degrees_[t]);
      if (variants == o.variants.end()) continue;
      const PlanVariant& fastest = *Useful(variants->second).front();
      for (size_t i = 0; i < o.in_edges.size(); ++i) {
        const int e = o.in_edges[i];
        target_pays[t][e] = (problem_.edges[e].bytes + fastest.in_sync[i]) * time_per_byte;
      }
      for (size_t i = 0; i < o.out_edges.size(); ++i) {
        const int e = o.out_edges[i];
        source_pays[t][e] = (problem_.edges[e].bytes + fastest.out_sync[i]) * time_per_byte;
        least_pays[e] = std::min(least_pays[e], problem_.edges[e].bytes * time_per_byte);
      }
    }
  }
  if (equal_ != nullptr) {
    const std::vector<int> edge_class = equal_->EdgeClasses();
    cut_edges_.emplace(problem_, groups_, sets_, edge_class, deadline);
    class_time_.assign(degrees_.size(), std::vector<double>(edges));
    for (size_t t = 0; t < degrees_.size(); ++t) {
      for (size_t e = 0; e < edges; ++e) {
        class_time_[t][edge_class[e]] = source_pays[t][e] + target_pays[t][e];
      }
    }
  }
  least_out_.assign(sets_.size(), 0);
  past_.resize(degrees_.size());
  past_begin_.assign(1, 0);
  CutWalk walk(problem_, groups_, sets_, deadline);
  while (walk.Next()) {
    const int u = walk.set();
    std::map<int, std::vector<double>> past;  // by source group
    for (int e : walk.edges()) {
      const int from = groups_.group_of[problem_.edges[e].from];
      least_out_[u] += std::isfinite(least_pays[e]) ? least_pays[e] : 0;
      std::vector<double>& times = past[from];
      times.resize(degrees_.size());
      for (size_t t = 0; t < degrees_.size(); ++t) {
        sums_[t][u].in += target_pays[t][e];
        sums_[t][u].out += source_pays[t][e];
        times[t] += source_pays[t][e] + target_pays[t][e];
      }
    }
    for (const auto& [source, times] : past) {
      for (size_t t = 0; t < degrees_.size(); ++t) past_[t].push_back({source, times[t]});
    }
    past_begin_.push_back(static_cast<int>(past_.empty() ? 0 : past_[0].size()));
  }
  stopped_ = walk.stopped();
}

double PiperCosts::PastOfEqual(int set, int later, int t) const {
  double time = 0;
  const auto above = cut_edges_->of(set), below = cut_edges_->of(later);
  for (auto a = above.begin(), b = below.begin(); a != above.end() && b != below.end();) {
    if (a->edge_class == b->edge_class) {
      time += class_time_[t][a->edge_class] * std::min(a->edges, b->edges);
      ++a;
      ++b;
    } else {
      ++(a->edge_class < b->edge_class ? a : b);
    }
  }
  return time;
}

const std::vector<PiperCosts::Saving>& PiperCosts::Savings(int t, int64_t y) const {
  if (static_cast<int64_t>(savings_[t].size()) <= y) savings_[t].resize(y + 1);
  KnownSavings& known = savings_[t][y];
  if (known.known) return known.savings;
  known.known = true;
  for (size_t m = 0; m < modes_[t].size(); ++m) {
    const SlowMode& mode = modes_[t][m];
    const double bytes = -(mode.in_flight_bytes * static_cast<double>(y) + mode.fixed_bytes);
    if (bytes > 0) known.savings.push_back({static_cast<int>(m), bytes, mode.time});
  }
  std::sort(known.savings.begin(), known.savings.end(),
            [](const Saving& a, const Saving& b) { return a.time * b.bytes < b.time * a.bytes; });
  return known.savings;
}

// Greedily. The best choice lies between taking a part of the last operator and all of it.
RecomputeTime PiperCosts::Knapsack(int set, int later, int t, int64_t y, double missing) const {
  const size_t classes = modes_[t].size();
  const uint16_t *counts = mode_counts_[t].data() + set * classes,
                 *below = mode_counts_[t].data() + later * classes;
  double time = 0;
  bool first = true;
  for (const Saving& saving : Savings(t, y)) {
    const int count = counts[saving.mode] - below[saving.mode];
    if (count == 0) continue;
    if (saving.bytes * count < missing) {
      missing -= saving.bytes * count;
      time += saving.time * count;
      first = false;
      continue;
    }
    const double operators = missing / saving.bytes;
    const double enough = time + saving.time * std::ceil(operators * (1 - 1e-12));
    // One class: no choice of operators is better than the fewest.
    if (first && OneClass(counts, below, classes, saving.mode)) return {enough, enough};
    return {std::min(time + saving.time * operators, enough), enough};
  }
  return {kNever, kNever};
}

double PiperCosts::ExactRecompute(int set, int later, int t, const PiperStage& stage, int64_t y,
                                  const RecomputeTime& bounds) const {
  if (bounds.least >= bounds.enough) return bounds.enough;
  const size_t classes = modes_[t].size();
  std::vector<ClassOfModes> counted;
  for (const Saving& saving : Savings(t, y)) {
    const int count = mode_counts_[t][set * classes + saving.mode] -
                      mode_counts_[t][later * classes + saving.mode];
    if (count > 0) counted.push_back({saving.bytes, saving.time, count});
  }
  bool exact = true;
  const double time = LeastTimeOfClasses(counted, Missing(stage, y), bounds.enough, &exact);
  if (exact) return time;
  std::vector<std::vector<MemoryMode>> choices;
  for (const ClassOfModes& c : counted) {
    for (int i = 0; i < c.count; ++i) choices.push_back({{0, 0}, {c.time, -c.bytes}});
  }
  const MemoryChoice choice = FastestFit(choices, -Missing(stage, y), time * kRoom);
  if (!choice.exact) exact_ = false;
  return std::min(choice.time, time);
}

PiperCosts::Choice PiperCosts::LeastTime(int set, int later, int t, int64_t d, int64_t y,
                                         double most) const {
  const double copies = static_cast<double>(d), time_per_byte = 2 / problem_.bandwidth;
  std::vector<std::vector<MemoryMode>> choices;
  Choice least;
  for (int g : sets_.Nodes(set, later)) {
    least.operators.insert(least.operators.end(), groups_.members[g].begin(),
                           groups_.members[g].end());
  }
  std::sort(least.operators.begin(), least.operators.end());
  const auto inside = [&](int v) {
    const int g = groups_.group_of[v];
    return sets_.Has(set, g) && !sets_.Has(later, g);
  };
  for (int v : least.operators) {
    const PlanOperator& o = problem_.operators[v];
    const auto variants = o.variants.find(degrees_[t]);
    if (variants == o.variants.end()) return {};
    choices.emplace_back();
    for (const PlanVariant& variant : variants->second) {
      double bytes = 0;
      for (size_t i = 0; i < o.in_edges.size(); ++i) {
        const PlanEdge& edge = problem_.edges[o.in_edges[i]];
        if (!inside(edge.from)) bytes += edge.bytes + variant.in_sync[i];
      }
      for (size_t i = 0; i < o.out_edges.size(); ++i) {
        const PlanEdge& edge = problem_.edges[o.out_edges[i]];
        if (!inside(edge.to)) bytes += edge.bytes + variant.out_sync[i];
      }
      const double sync = 4 * (copies - 1) * variant.parameter_bytes / copies /
                          static_cast<double>(problem_.micro_batches) / problem_.bandwidth;
      choices.back().push_back(
          {(variant.time + bytes * time_per_byte) / copies + sync,
           variant.in_flight_bytes * static_cast<double>(y) + variant.fixed_bytes});
    }
  }
  MemoryChoice choice = FastestFit(choices, room_, most * kRoom);
  if (!choice.exact) exact_ = false;
  least.variants = std::move(choice.modes);
  least.time = choice.time;
  return least;
}

}  // namespace pipelab
