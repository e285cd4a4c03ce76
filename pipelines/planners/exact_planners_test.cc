// Exact planners against every plan there is: all connected DAGs of up to 5 operators, and a seeded
// sample of those of 6 and 7, on up to 4 devices.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/checker/check_plan.h"
#include "pipelines/planners/planners.h"
#include "tests/support/plan_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kSample = 1000;  // of the graphs of a size

void ExpectOptimal(absl::string_view planner, const PlanProblem& problem, double best,
                   const std::string& what) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan(planner, problem, {}));
  if (!std::isfinite(best)) {
    EXPECT_EQ(plan.state, PlanState::kInfeasible) << what;
    EXPECT_FALSE(plan.has_plan()) << what;
    return;
  }
  ASSERT_EQ(plan.state, PlanState::kOptimal) << what << " " << best;
  EXPECT_NEAR(plan.value, best, 1e-9 * best) << what;
  EXPECT_NEAR(plan.lower_bound, best, 1e-9 * best) << what;
  EXPECT_THAT(CheckPlan(problem, plan), IsOk()) << what;
}

void ForAllGraphs(
    const std::function<void(const SmallGraph&, uint64_t seed, const std::string&)>& test) {
  for (int nodes = 1; nodes <= 7; ++nodes) {
    uint64_t seed = 1000 * static_cast<uint64_t>(nodes);
    for (const SmallGraph& graph : SmallGraphs(nodes, nodes <= 5 ? 1024 : kSample, 7)) {
      ++seed;
      test(graph, seed, absl::StrCat(nodes, " nodes, seed ", seed));
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Masks of operators; `before` comes before.
struct Masks {
  std::vector<int> needs;      // [operator] what it takes
  std::vector<int> followers;  // [operator] what takes its output
  explicit Masks(const PlanProblem& p) : needs(p.size()), followers(p.size()) {
    for (const PlanEdge& e : p.edges) {
      needs[e.to] |= 1 << e.from;
      followers[e.from] |= 1 << e.to;
    }
  }
};

// The best over all stages with the ways of their operators, then over all sequences, from the last
// stage on.
class PiperBruteForce {
 public:
  explicit PiperBruteForce(const PlanProblem& p) : p_(p), masks_(p), all_((1 << p.size()) - 1) {}

  double Best() {
    Extend(0, 0, 0, 0);
    return best_;
  }

 private:
  void Extend(int behind, int64_t copies, int64_t devices, double longest) {
    if (longest >= best_) return;
    if (behind == all_) {
      best_ = longest;
      return;
    }
    for (int stage = all_ & ~behind; stage > 0; stage = (stage - 1) & all_ & ~behind) {
      bool closed = true;
      for (int v = 0; v < p_.size(); ++v) {
        if ((stage >> v) & 1) closed &= (masks_.followers[v] & ~(stage | behind)) == 0;
      }
      if (!closed) continue;
      for (int t : {1, 2}) {
        for (int64_t d = 1; devices + d * t <= p_.devices; ++d) {
          if (p_.micro_batches % d != 0 || copies + d > p_.micro_batches) continue;
          const double time = Least(stage, t, d, (copies + d + d - 1) / d);
          Extend(behind | stage, copies + d, devices + d * t, std::max(longest, time));
        }
      }
    }
  }

  double Least(int stage, int t, int64_t d, int64_t y) {
    const auto added = known_.emplace(std::make_tuple(stage, t, d, y), kInfinity);
    if (added.second) Choose({stage, t, d, y}, 0, 0, 0, &added.first->second);
    return added.first->second;
  }

  struct Stage {
    int set, tensor;
    int64_t copies, in_flight;
  };

  void Choose(const Stage& stage, int v, double time, double bytes, double* best) const {
    while (v < p_.size() && ((stage.set >> v) & 1) == 0) ++v;
    if (v == p_.size()) {
      if (bytes <= p_.memory_bytes * (1 + 1e-12)) *best = std::min(*best, time);
      return;
    }
    const PlanOperator& o = p_.operators[v];
    if (o.variants.count(stage.tensor) == 0) return;
    const auto n = static_cast<double>(p_.micro_batches);
    const auto copies = static_cast<double>(stage.copies);
    for (const PlanVariant& variant : o.variants.at(stage.tensor)) {
      double border = 0;
      for (size_t i = 0; i < o.in_edges.size(); ++i) {
        const PlanEdge& e = p_.edges[o.in_edges[i]];
        if (((stage.set >> e.from) & 1) == 0) border += e.bytes + variant.in_sync[i];
      }
      for (size_t i = 0; i < o.out_edges.size(); ++i) {
        const PlanEdge& e = p_.edges[o.out_edges[i]];
        if (((stage.set >> e.to) & 1) == 0) border += e.bytes + variant.out_sync[i];
      }
      const double sum = 4 * (copies - 1) * variant.parameter_bytes / (copies * n);
      const auto in_flight = static_cast<double>(stage.in_flight);
      Choose(stage, v + 1,
             time + variant.time / copies + (2 * border / copies + sum) / p_.bandwidth,
             bytes + variant.in_flight_bytes * in_flight + variant.fixed_bytes, best);
    }
  }

  const PlanProblem& p_;
  const Masks masks_;
  const int all_;
  double best_ = kInfinity;
  std::map<std::tuple<int, int, int64_t, int64_t>, double> known_;
};

TEST(Piper, IsBruteForce) {
  int infeasible = 0;
  for (int kind = 0; kind < 4; ++kind) {
    SmallOptions options;
    options.recompute = kind > 0;
    options.tensor = kind > 1;
    options.irregular = kind > 2;
    ForAllGraphs([&](const SmallGraph& graph, uint64_t seed, const std::string& what) {
      if (graph.nodes >= 6 && seed % 4 != static_cast<uint64_t>(kind)) return;
      const PlanProblem p = SmallProblem(graph, PlanObjective::kStageTime, options, seed);
      const double best = PiperBruteForce(p).Best();
      infeasible += std::isfinite(best) ? 0 : 1;
      ExpectOptimal("piper", p, best, absl::StrCat("kind ", kind, " ", what));
    });
  }
  EXPECT_GT(infeasible, 20);
}

TEST(Piper, IsBruteForceOnEqualBranches) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Draw draw(seed, "equal branches");
    SmallOptions options;
    options.recompute = draw.Below(2) == 0;
    options.tensor = draw.Below(3) == 0;
    options.irregular = draw.Below(4) == 0;
    const bool joined = draw.Below(2) == 0;
    const int branches = 2 + static_cast<int>(draw.Below(2));
    const int length = 1 + static_cast<int>(draw.Below(branches == 2 && !joined ? 3 : 2));
    PlanProblem p = SmallProblem(EqualLines(branches, length, joined), PlanObjective::kStageTime,
                                 options, seed);
    MakeLinesEqual(branches, length, joined, &p);
    ExpectOptimal("piper", p, PiperBruteForce(p).Best(),
                  absl::StrCat("seed ", seed, ", ", branches, " of ", length));
  }
}

// All sequences of stages of one device each as finished plans, judged by the checker.
void ForAllSequences(const PlanProblem& p, int most_stages,
                     const std::function<void(const std::vector<PlanStage>&)>& take) {
  const Masks masks(p);
  const int all = (1 << p.size()) - 1;
  std::vector<PlanStage> stages;
  const std::function<void(int)> extend = [&](int before) {
    if (before == all) return take(stages);
    if (static_cast<int>(stages.size()) == most_stages) return;
    for (int stage = all & ~before; stage > 0; stage = (stage - 1) & all & ~before) {
      bool closed = true;
      PlanStage added;
      for (int v = 0; v < p.size(); ++v) {
        if (((stage >> v) & 1) == 0) continue;
        closed &= (masks.needs[v] & ~(stage | before)) == 0;
        added.layers.push_back(v);
      }
      if (!closed) continue;
      added.variants.assign(added.layers.size(), 0);
      stages.push_back(std::move(added));
      extend(before | stage);
      stages.pop_back();
    }
  };
  extend(0);
}

double ValueOf(const PlanProblem& p, PlanObjective objective,
               const std::vector<PlanStage>& stages) {
  Plan plan;
  plan.objective = objective;
  plan.stages = stages;
  const absl::StatusOr<PlanReport> report = EvaluatePlan(p, plan);
  return report.ok() ? report->value : kInfinity;
}

// Copies of each stage, at most `left` in all, on two levels exactly; nested on two levels where
// there are two.
void ForAllCopies(const PlanProblem& p, std::vector<PlanStage> stages, size_t s, int64_t left,
                  const std::function<void(const std::vector<PlanStage>&)>& take) {
  if (s == stages.size()) {
    if (left == 0 || p.levels.size() == 1) take(stages);
    return;
  }
  for (int64_t d = 1; d <= left; ++d) {
    for (int64_t inner = 1; inner <= (p.levels.size() > 1 ? p.levels[0].devices : d); ++inner) {
      if (p.levels.size() == 1 && inner != d) continue;
      if (d % inner != 0) continue;
      stages[s].data = d;
      stages[s].data_of_level = {inner};
      if (p.levels.size() > 1) stages[s].data_of_level.push_back(d / inner);
      ForAllCopies(p, stages, s + 1, left - d, take);
    }
  }
}

// Stages of one machine of the upper level fill it, and have as many copies there.
bool FillsMachines(const PlanProblem& p, const std::vector<PlanStage>& stages) {
  if (p.levels.size() == 1) return true;
  int64_t filled = 0, outer = 0;
  for (const PlanStage& stage : stages) {
    if (filled == 0) outer = stage.data_of_level[1];
    if (stage.data_of_level[1] != outer) return false;
    filled += stage.data_of_level[0];
    if (filled > p.levels[0].devices) return false;
    if (filled == p.levels[0].devices) filled = 0;
  }
  return filled == 0;
}

TEST(PipeDream, IsBruteForce) {
  int levels = 0;
  ForAllGraphs([&](const SmallGraph& graph, uint64_t seed, const std::string& what) {
    if (graph.nodes >= 6 && seed % 4 != 0) return;
    const PlanProblem p = SmallProblem(graph, PlanObjective::kPipeDream, {}, seed);
    levels += p.levels.size() > 1 ? 1 : 0;
    double best = kInfinity;
    ForAllSequences(p, static_cast<int>(p.devices), [&](const std::vector<PlanStage>& stages) {
      ForAllCopies(p, stages, 0, p.devices, [&](const std::vector<PlanStage>& copied) {
        if (!FillsMachines(p, copied)) return;
        best = std::min(best, ValueOf(p, PlanObjective::kPipeDream, copied));
      });
    });
    ExpectOptimal("pipedream", p, best, what);
  });
  EXPECT_GT(levels, 100);
}

// Forward operators in sequences; each stage on an accelerator or a processor; their backwards go
// with them.
double BestMaxLoad(const PlanProblem& p, int forward) {
  PlanProblem front = p;
  front.operators.resize(forward);
  front.edges.erase(
      std::remove_if(front.edges.begin(), front.edges.end(),
                     [&](const PlanEdge& e) { return e.from >= forward || e.to >= forward; }),
      front.edges.end());
  double best = kInfinity;
  const int most = static_cast<int>(p.devices + p.processors);
  ForAllSequences(front, most, [&](const std::vector<PlanStage>& stages) {
    for (int devices = 0; devices < (1 << stages.size()); ++devices) {
      std::vector<PlanStage> placed = stages;
      for (size_t s = 0; s < placed.size(); ++s) {
        placed[s].on_processor = ((devices >> s) & 1) == 1;
        if (p.size() == forward) continue;
        for (size_t i = placed[s].layers.size(); i-- > 0;) {
          placed[s].layers.push_back(placed[s].layers[i] + forward);
          placed[s].variants.push_back(0);
        }
      }
      best = std::min(best, ValueOf(p, PlanObjective::kMaxLoad, placed));
    }
  });
  return best;
}

TEST(MaxLoad, IsBruteForce) {
  for (int kind = 0; kind < 3; ++kind) {
    SmallOptions options;
    options.backward = kind == 1;
    options.idle = kind == 2;
    ForAllGraphs([&](const SmallGraph& graph, uint64_t seed, const std::string& what) {
      if (graph.nodes >= 6 && seed % 30 != static_cast<uint64_t>(kind)) return;
      const PlanProblem p = SmallProblem(graph, PlanObjective::kMaxLoad, options, seed);
      ExpectOptimal("max_load", p, BestMaxLoad(p, graph.nodes),
                    absl::StrCat("kind ", kind, " ", what));
    });
  }
}

// All cuts of the layers in line.
void ForAllCuts(const PlanProblem& p, int most_stages,
                const std::function<void(const std::vector<PlanStage>&)>& take) {
  const std::vector<int> order = TopologicalOrder(p);
  for (int cuts = 0; cuts < (1 << (p.size() - 1)); ++cuts) {
    std::vector<PlanStage> stages(1);
    for (int i = 0; i < p.size(); ++i) {
      if (i > 0 && ((cuts >> (i - 1)) & 1) == 1) stages.emplace_back();
      stages.back().layers.push_back(order[i]);
      stages.back().variants.push_back(0);
    }
    if (static_cast<int>(stages.size()) <= most_stages) take(stages);
  }
}

TEST(Chain, IsBruteForce) {
  for (PlanObjective objective :
       {PlanObjective::kStageTime, PlanObjective::kPipeDream, PlanObjective::kMaxLoad}) {
    ForAllGraphs([&](const SmallGraph& graph, uint64_t seed, const std::string& what) {
      PlanProblem p = SmallProblem(graph, objective, {}, seed);
      if (objective == PlanObjective::kStageTime && p.micro_batches < p.devices) {
        p.micro_batches = p.devices;  // a stage needs one in flight for each behind it
      }
      if (objective == PlanObjective::kPipeDream) p.levels = {{p.devices, p.bandwidth}};
      for (PlanOperator& o : p.operators) o.on_accelerator = true;
      p.processors = 0;
      double best = kInfinity;
      ForAllCuts(p, static_cast<int>(p.devices), [&](const std::vector<PlanStage>& stages) {
        best = std::min(best, ValueOf(p, objective, stages));
      });
      ExpectOptimal("chain", p, best, what);
    });
  }
}

TEST(Gpipe, IsBruteForce) {
  ForAllGraphs([&](const SmallGraph& graph, uint64_t seed, const std::string& what) {
    SmallOptions options;
    options.memory = false;
    PlanProblem p = SmallProblem(graph, PlanObjective::kStageTime, options, seed);
    p.micro_batches = 12;
    const size_t stages = std::min<size_t>(p.devices, p.operators.size());
    double best = kInfinity;
    ForAllCuts(p, static_cast<int>(stages), [&](const std::vector<PlanStage>& cut) {
      if (cut.size() == stages) best = std::min(best, ValueOf(p, PlanObjective::kVariance, cut));
    });
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Plan plan, MakePlan("gpipe", p, {}));
    EXPECT_NEAR(plan.value, best, 1e-9 * (1 + best)) << what;
    EXPECT_EQ(plan.stages.size(), stages);
  });
}

}  // namespace
}  // namespace pipelab
