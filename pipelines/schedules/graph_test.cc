#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/brute_force.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

SchemeParams GraphParams(int micro_batches, StageGraph stages) {
  SchemeParams params{stages.num_stages(), micro_batches};
  params.stages = std::move(stages);
  return params;
}

// `branches` branches of `length` stages each, and a stage that joins them.
StageGraph Branches(int branches, int length) {
  std::vector<StageGraph::Edge> edges;
  const int join = branches * length;
  for (int b = 0; b < branches; ++b) {
    for (int i = 0; i < length; ++i) {
      const int stage = b * length + i;
      edges.push_back({stage, i + 1 < length ? stage + 1 : join});
    }
  }
  return StageGraph::FromEdges(join + 1, std::move(edges));
}

// Two branches of two stages and a join: as deep as a chain of three.
TEST(Graph, TwoBranches) {
  EXPECT_EQ(Picture("graph", GraphParams(4, Branches(2, 2))), R"(
0: 0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3
1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3
2: 2F0 2F1 2F2 2B0 2F3 2B1 2B2 2B3
3: 3F0 3F1 3B0 3F2 3B1 3F3 3B2 3B3
4: 4F0 4B0 4F1 4B1 4F2 4B2 4F3 4B3
)");
  EXPECT_EQ(Timeline(MakeOrDie("graph", GraphParams(4, Branches(2, 2)))), R"(
 0 1 2    '0 3'1  '2  '3|
   0 1  '0 2'1 3'2  '3  |
 0 1 2    '0 3'1  '2  '3|
   0 1  '0 2'1 3'2  '3  |
     0'0 1'1 2'2 3'3    |
)");
}

// A branch with micro-batches twice as large, and a join with the small ones.
TEST(Graph, TwoSizesOfMicroBatches) {
  SchemeParams params = GraphParams(8, Branches(2, 1));
  params.micro_batches_of_stage = {8, 4, 8};
  EXPECT_EQ(Picture("graph", params), R"(
0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0F5 0B4 0F6 0B5 0F7 0B6 0B7
1: 1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3
2: 2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5 2F6 2B6 2F7 2B7
)");
}

TEST(Graph, OfAChainIs1F1B) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 3 * p; ++m) {
      const Schedule chain = MakeOrDie("1f1b", {p, m});
      const Schedule graph = MakeOrDie("graph", {p, m});
      ASSERT_EQ(graph.order, chain.order) << p << " " << m;
      ASSERT_EQ(graph.placement.groups, chain.placement.groups);
      ASSERT_TRUE(graph.stages.IsChain());
      ASSERT_TRUE(graph.micro_batches_of_stage.empty());
      SchemeParams params = GraphParams(m, StageGraph::Chain(p));
      params.micro_batches_of_stage.assign(p, m);
      ASSERT_EQ(MakeOrDie("graph", params).order, chain.order);
      ASSERT_TRUE(MakeOrDie("graph", params).micro_batches_of_stage.empty());
      // All forwards of a group, then all its backwards: GPipe where the group is everything.
      params.group_size = m;
      ASSERT_EQ(MakeOrDie("graph", params).order, MakeOrDie("gpipe", {p, m}).order);
    }
  }
}

// Depth D = longest path: the bubble of a chain of D stages, and min(M, stages to the end) in
// flight.
TEST(Graph, ClosedForms) {
  for (int branches = 1; branches <= 4; ++branches) {
    for (int length = 1; length <= 4; ++length) {
      const int depth = length + 1;
      for (int m = 1; m <= 3 * depth; ++m) {
        const UnitFigures f =
            Figures(MakeOrDie("graph", GraphParams(m, Branches(branches, length))));
        ASSERT_EQ(f.busy, 3 * m);
        ASSERT_EQ(f.idle, 3 * (depth - 1)) << branches << " " << length << " " << m;
        for (int b = 0; b < branches; ++b) {
          for (int i = 0; i < length; ++i) {
            ASSERT_EQ(f.peak[b * length + i], std::min(m, depth - i));
          }
        }
      }
    }
  }
}

// The paper's case study: two branches and a join on 8 devices are a pipeline of depth 8 as a chain
// and of depth 4 as a graph, with half the warm-up and half the activations in flight.
TEST(Graph, CaseStudy) {
  constexpr int kMicroBatches = 16;
  SchemeParams params = GraphParams(kMicroBatches, Branches(2, 3));
  params.devices = 8;
  params.devices_of_stage = {{0}, {1}, {2}, {3}, {4}, {5}, {6, 7}};
  const Schedule graph = MakeOrDie("graph", params);
  const Schedule chain = MakeOrDie("1f1b", {8, kMicroBatches});
  const auto warm_up = [](const Schedule& s) {
    size_t most = 0;
    for (const auto& list : s.order) {
      size_t forwards = 0;
      while (list[forwards].kind == ActionKind::kForward) ++forwards;
      most = std::max(most, forwards);
    }
    return most;
  };
  EXPECT_EQ(warm_up(chain), 8u);
  EXPECT_EQ(warm_up(graph), 4u);
  EXPECT_EQ(graph.order[6], graph.order[7]);
}

// kFkB of a chain: k times the micro-batches of 1F1B in flight.
TEST(Graph, Groups) {
  SchemeParams params{3, 8};
  params.group_size = 2;
  EXPECT_EQ(Picture("graph", params), R"(
0: 0F0 0F1 0F2 0F3 0F4 0F5 0B0 0B1 0F6 0F7 0B2 0B3 0B4 0B5 0B6 0B7
1: 1F0 1F1 1F2 1F3 1B0 1B1 1F4 1F5 1B2 1B3 1F6 1F7 1B4 1B5 1B6 1B7
2: 2F0 2F1 2B0 2B1 2F2 2F3 2B2 2B3 2F4 2F5 2B4 2B5 2F6 2F7 2B6 2B7
)");
}

// --- Random DAGs with random micro-batches. ----------------------------------

class RandomDags {
 public:
  explicit RandomDags(uint64_t seed) : rng_(seed, "graph pipelines") {}

  // Powers of two up to `most` samples a micro-batch, of `samples` in all; stages in an order that
  // is not topological.
  SchemeParams Next(int most_stages, int most, int samples) {
    const int stages = 1 + Below(most_stages);
    std::vector<int> name(stages);
    for (int s = 0; s < stages; ++s) {
      name[s] = s;
      std::swap(name[s], name[Below(s + 1)]);
    }
    std::vector<StageGraph::Edge> edges;
    for (int to = 1; to < stages; ++to) {
      for (int from = 0; from < to; ++from) {
        if (Below(3) == 0) edges.push_back({name[from], name[to]});
      }
    }
    std::vector<int32_t> counts(stages);
    int32_t largest = 0;
    for (int32_t& count : counts) {
      count = samples;
      while (count > samples / most && Below(2) == 0) count /= 2;
      largest = std::max(largest, count);
    }
    SchemeParams params = GraphParams(largest, StageGraph::FromEdges(stages, std::move(edges)));
    params.micro_batches_of_stage = std::move(counts);
    return params;
  }
  int Below(int n) { return static_cast<int>(rng_.Below(n_++, n)); }

 private:
  const CounterRng rng_;
  uint64_t n_ = 0;
};

// Valid to a judge that knows no rule but what an action needs; and lowered soundly.
TEST(Graph, NeverDeadlocks) {
  RandomDags dags(1);
  for (int trial = 0; trial < 400; ++trial) {
    SchemeParams params = dags.Next(8, 8, trial % 4 == 0 ? 24 : 8);
    params.group_size = dags.Below(4);
    const Schedule s = MakeOrDie("graph", params);
    ASSERT_TRUE(BruteForceValid(s)) << trial;
    const absl::StatusOr<Program> program = Lower(s, {});
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_EQ(CheckProgram(*program), "") << trial;
  }
}

// Forward f and backward g units a sample, at every stage.
int64_t GraphMakespan(const Schedule& s, int f, int g) {
  CostTable costs = CostTable::Unit(s, Nanoseconds(1));
  for (StageCost& c : costs.stages) {
    c.forward = c.forward * f;
    c.backward_input = c.backward_input * g;
    c.backward_weight = Nanoseconds(0);
  }
  return Simulate(*Lower(s, {}), costs)->makespan.value();
}

// The same with one micro-batch less in flight at a stage.
Schedule WithLess(Schedule s, int stage) {
  std::vector<Action>& list = s.order[stage];
  std::vector<Action> forwards, backwards, order;
  size_t in_flight = 0;
  while (list[in_flight].kind == ActionKind::kForward) ++in_flight;
  for (const Action& a : list) {
    (a.kind == ActionKind::kForward ? forwards : backwards).push_back(a);
  }
  size_t f = 0;
  while (f + 1 < in_flight) order.push_back(forwards[f++]);
  for (const Action& b : backwards) {
    order.push_back(b);
    if (f < forwards.size()) order.push_back(forwards[f++]);
  }
  list = order;
  return s;
}

// In steady state no stage ever waits, whatever the share of forward and backward: twice the
// micro-batches take as much longer as one stage needs for them. And with one micro-batch less at
// any stage the step takes longer; only where branches of different depth and different
// micro-batches meet is that not always so.
TEST(Graph, InFlightIsWhatKeepsAllStagesBusy) {
  RandomDags dags(2);
  int stages = 0, spare = 0;
  for (int trial = 0; trial < 150; ++trial) {
    SchemeParams params = dags.Next(6, 4, 64);
    if (params.micro_batches < 64) continue;
    const int f = 1, g = 1 + trial % 3;
    const Schedule s = MakeOrDie("graph", params);
    SchemeParams twice = params;
    twice.micro_batches *= 2;
    for (int32_t& count : twice.micro_batches_of_stage) count *= 2;
    const int64_t makespan = GraphMakespan(s, f, g);
    ASSERT_EQ(GraphMakespan(MakeOrDie("graph", twice), f, g) - makespan, (f + g) * 64) << trial;
    for (int stage = 0; stage < s.num_stages(); ++stage) {
      if (s.order[stage][1].kind == ActionKind::kBackward) continue;  // one is the least
      const Schedule less = WithLess(s, stage);
      ++stages;
      spare += BruteForceValid(less) && GraphMakespan(less, f, g) <= makespan;
    }
  }
  EXPECT_GT(stages, 150);
  EXPECT_LE(spare, stages / 100);
}

TEST(Graph, SharesAStageByRows) {
  SchemeParams params{3, 2};
  params.devices_of_stage = {{0, 2}, {1}};
  EXPECT_EQ(Picture("graph", params), R"(
0: 0F0 0F1 0B0 0B1
1: 1F0 1B0 1F1 1B1
2: 0F0 0F1 0B0 0B1
)");
}

TEST(Graph, Refuses) {
  EXPECT_EQ(Refusal("graph", {2, 2, 3}),
            "graph --virtual_stages=3: this scheme holds one stage per device; use "
            "--virtual_stages=1");
  SchemeParams params = GraphParams(2, Branches(2, 1));
  params.devices = 2;
  EXPECT_EQ(Refusal("graph", params),
            "graph --devices=2: the stage graph has 3 stages, one per device; use "
            "--devices=3");
  EXPECT_EQ(Refusal("1f1b", GraphParams(2, Branches(2, 1))),
            "1f1b --edges: only for graph, vocab_1f1b, vocab_interlaced, vocab_v_half");
  EXPECT_EQ(Refusal("graph", GraphParams(2, StageGraph::FromEdges(2, {{0, 1}, {1, 0}}))),
            "graph --edges: the stage graph has a cycle");
  params = SchemeParams{2, 2};
  params.devices_of_stage = {{0}, {0, 1}};
  EXPECT_EQ(Refusal("graph", params),
            "graph --devices=2: device 0 of a stage's group does not exist, or holds "
            "another stage too");
  for (const int device : {-1, 2}) {
    params.devices_of_stage = {{0}, {device}};
    EXPECT_EQ(Refusal("graph", params),
              "graph --devices=2: device " + std::to_string(device) +
                  " of a stage's group does not exist, or holds another stage too");
  }
  const auto counts = [](int micro_batches, std::vector<int32_t> of_stage) {
    SchemeParams p{3, micro_batches};
    p.micro_batches_of_stage = std::move(of_stage);
    return p;
  };
  EXPECT_EQ(Refusal("1f1b", counts(8, {8, 4, 8})),
            "1f1b --stage_micro_batches=8,4,8: only for graph, local_replay");
  EXPECT_EQ(Refusal("graph", counts(8, {8, 4})),
            "graph --stage_micro_batches=8,4: 2 numbers for 3 stages; give one per stage");
  EXPECT_EQ(Refusal("graph", counts(8, {8, 3, 8})),
            "graph --stage_micro_batches=8,3,8: 3 does not divide --micro_batches=8");
  EXPECT_EQ(Refusal("graph", counts(8, {4, 2, 4})),
            "graph --stage_micro_batches=4,2,4: the largest number is 4; use "
            "--micro_batches=4");
  EXPECT_EQ(Refusal("graph", counts(6, {6, 3, 2})),
            "graph --stage_micro_batches=6,3,2: stages 1 and 2 share an edge, and neither "
            "of 3 and 2 divides the other");
  params = SchemeParams{2, 2};
  params.group_size = -1;
  EXPECT_EQ(Refusal("graph", params), "graph --group_size=-1: must be at least 1 (0: 1)");
}

}  // namespace
}  // namespace pipelab
