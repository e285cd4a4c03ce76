#include "tests/support/plan_testing.h"

#include <limits>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "tools/base/draws.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

bool IsConnected(const SmallGraph& graph) {
  std::vector<int> part(graph.nodes);
  std::iota(part.begin(), part.end(), 0);
  for (int round = 0; round < graph.nodes; ++round) {
    for (const auto& [a, b] : graph.edges) part[a] = part[b] = std::min(part[a], part[b]);
  }
  for (int p : part) {
    if (p != 0) return false;
  }
  return true;
}

SmallGraph GraphOf(int nodes, uint64_t bits) {
  SmallGraph graph;
  graph.nodes = nodes;
  for (int b = 1, i = 0; b < nodes; ++b) {
    for (int a = 0; a < b; ++a, ++i) {
      if ((bits >> i) & 1) graph.edges.emplace_back(a, b);
    }
  }
  return graph;
}

// Half of them whole.
double Number(Draws* draws, int64_t most) {
  const double whole = static_cast<double>(1 + draws->Below(most));
  return draws->OneIn(2) ? whole : whole + draws->Uniform();
}

PlanVariant Variant(Draws* draws, int degree) {
  PlanVariant v;
  v.name = "plain";
  v.time = Number(draws, 8) / degree;
  v.forward_time = v.time / 3;
  v.parameter_bytes = Number(draws, 6) / degree;
  v.in_flight_bytes = Number(draws, 6) / degree;
  v.fixed_bytes = Number(draws, 4) / degree;
  return v;
}

void AddMenu(const SmallOptions& options, int degree, Draws* draws, PlanOperator* o) {
  std::vector<PlanVariant>& variants = o->variants[degree];
  variants.push_back(Variant(draws, degree));
  if (!options.recompute || draws->Below(4) == 0) return;
  PlanVariant again = variants[0];
  again.name = "recompute";
  again.recompute = true;
  again.time += Number(draws, 3);
  again.in_flight_bytes *= 0.25;
  again.fixed_bytes += draws->Below(2) == 0 ? 0 : 1;
  if (options.irregular) again.parameter_bytes += static_cast<double>(draws->Below(3));
  variants.push_back(again);
  if (!options.irregular || draws->Below(2) == 0) return;
  again.name = "recompute more";
  again.time += 1;
  again.in_flight_bytes *= 0.5;
  variants.push_back(again);
}

void AddSync(const SmallOptions& options, Draws* draws, PlanProblem* problem) {
  std::vector<size_t> ins(problem->size()), outs(problem->size());
  for (const PlanEdge& edge : problem->edges) {
    ++outs[edge.from];
    ++ins[edge.to];
  }
  for (int v = 0; v < problem->size(); ++v) {
    for (auto& [degree, variants] : problem->operators[v].variants) {
      for (size_t i = 0; i < variants.size(); ++i) {
        if (i > 0 && !options.irregular) {
          variants[i].in_sync = variants[0].in_sync;
          variants[i].out_sync = variants[0].out_sync;
          continue;
        }
        for (size_t e = 0; e < ins[v]; ++e) {
          variants[i].in_sync.push_back(degree == 1 ? 0 : static_cast<double>(draws->Below(3)));
        }
        for (size_t e = 0; e < outs[v]; ++e) {
          variants[i].out_sync.push_back(degree == 1 ? 0 : static_cast<double>(draws->Below(3)));
        }
      }
    }
  }
}

// Each operator's backward, with the edges turned round, and its gradient's transfer.
void AddBackward(Draws* draws, PlanProblem* problem) {
  const int n = problem->size();
  const size_t edges = problem->edges.size();
  for (int v = 0; v < n; ++v) {
    PlanOperator backward = problem->operators[v];
    backward.id = absl::StrCat(v + n);
    backward.is_backward = true;
    backward.colour = problem->operators[v].colour = v;
    backward.variants.at(1)[0].time *= 2;
    backward.transfer_time = Number(draws, 2);
    problem->operators.push_back(std::move(backward));
    problem->edges.push_back({v, v + n, 1});
  }
  for (size_t e = 0; e < edges; ++e) {
    const PlanEdge edge = problem->edges[e];
    problem->edges.push_back({edge.to + n, edge.from + n, 1});
  }
}

}  // namespace

std::vector<SmallGraph> SmallGraphs(int nodes, int most, uint64_t seed) {
  const int pairs = nodes * (nodes - 1) / 2;
  const uint64_t all = uint64_t{1} << pairs;
  std::vector<SmallGraph> graphs;
  if (all <= static_cast<uint64_t>(most)) {
    for (uint64_t bits = 0; bits < all; ++bits) {
      SmallGraph graph = GraphOf(nodes, bits);
      if (IsConnected(graph)) graphs.push_back(std::move(graph));
    }
    return graphs;
  }
  const CounterRng rng(seed, "small graphs");
  std::set<uint64_t> drawn;
  for (uint64_t i = 0; static_cast<int>(graphs.size()) < most; ++i) {
    // Fewer edges leave more cuts: half of the graphs are sparse.
    uint64_t bits = rng.Below(2 * i, all);
    if (i % 2 == 0) bits &= rng.Below(2 * i + 1, all);
    SmallGraph graph = GraphOf(nodes, bits);
    if (drawn.insert(bits).second && IsConnected(graph)) graphs.push_back(std::move(graph));
  }
  return graphs;
}

PlanProblem SmallProblem(const SmallGraph& graph, PlanObjective objective,
                         const SmallOptions& options, uint64_t seed) {
  Draws draws(seed, "small problems");
  PlanProblem p;
  p.objective = objective;
  p.integer_ids = true;
  p.devices = 1 + static_cast<int64_t>(draws.Below(4));
  const int64_t batches[] = {1, 2, 4, 6, 12};
  p.micro_batches = batches[draws.Below(5)];
  p.bandwidth = Number(&draws, 4);
  double all_memory = 0;
  for (int v = 0; v < graph.nodes; ++v) {
    PlanOperator o;
    o.id = absl::StrCat(v);
    o.output_bytes = Number(&draws, 4);
    AddMenu(options, 1, &draws, &o);
    if (options.tensor && draws.Below(4) != 0) AddMenu(options, 2, &draws, &o);
    if (objective == PlanObjective::kMaxLoad) {
      o.transfer_time = draws.Below(3) == 0 ? 0 : Number(&draws, 3);
      o.processor_time = 3 * o.variants.at(1)[0].time;
      o.on_accelerator = draws.Below(16) != 0;
      o.variants.at(1)[0].in_flight_bytes = 0;
      if (options.idle && draws.Below(4) == 0) {
        o.processor_time = o.variants.at(1)[0].time = 0;
        if (draws.Below(2) == 0) o.variants.at(1)[0].fixed_bytes = 0;
      }
    }
    all_memory += o.variants.at(1)[0].in_flight_bytes + o.variants.at(1)[0].fixed_bytes;
    p.operators.push_back(std::move(o));
  }
  for (const auto& [from, to] : graph.edges) {
    p.edges.push_back({from, to, static_cast<double>(draws.Below(4))});
  }
  if (objective == PlanObjective::kMaxLoad) p.processors = static_cast<int64_t>(draws.Below(2));
  if (options.backward) AddBackward(&draws, &p);
  AddSync(options, &draws, &p);
  if (options.memory && draws.Below(3) != 0) {
    p.memory_bytes = all_memory * (0.3 + 0.1 * static_cast<double>(draws.Below(12)));
  }
  if (objective == PlanObjective::kPipeDream) {
    p.levels = {{p.devices, p.bandwidth}};
    if (p.devices == 4 && draws.Below(2) == 0) p.levels = {{2, p.bandwidth * 4}, {2, p.bandwidth}};
    if (p.levels.size() > 1) p.memory_bytes = std::numeric_limits<double>::infinity();
  }
  CHECK_EQ(FinishProblem(&p, "small problem").message(), "");
  return p;
}

SmallGraph EqualLines(int branches, int length, bool joined) {
  SmallGraph graph;
  graph.nodes = branches * length + (joined ? 2 : 0);
  for (int b = 0; b < branches; ++b) {
    const int first = b * length + (joined ? 1 : 0);
    if (joined) graph.edges.emplace_back(0, first);
    for (int i = 1; i < length; ++i) graph.edges.emplace_back(first + i - 1, first + i);
    if (joined) graph.edges.emplace_back(first + length - 1, graph.nodes - 1);
  }
  return graph;
}

void MakeLinesEqual(int branches, int length, bool joined, PlanProblem* problem) {
  const size_t edges = problem->edges.size() / branches;
  for (size_t e = edges; e < problem->edges.size(); ++e) {
    problem->edges[e].bytes = problem->edges[e % edges].bytes;
  }
  const int first = joined ? 1 : 0;
  for (int v = length; v < branches * length; ++v) {
    const PlanOperator& like = problem->operators[first + v % length];
    problem->operators[first + v].variants = like.variants;
    problem->operators[first + v].output_bytes = like.output_bytes;
  }
}

}  // namespace pipelab
