#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/weight_ring.h"
#include "pipelines/schedules/closed_forms.h"
#include "pipelines/schedules/formula.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(WeiPipe, Figures) {
  EXPECT_EQ(Picture("weipipe_naive", {2, 4}), R"(
0: 0F0 1F0 1B0 0B0 0F2 1F2 1B2 0B2
1: 0F1 1F1 1B1 0B1 0F3 1F3 1B3 0B3
)");
  EXPECT_EQ(Picture("weipipe", {2, 4}), R"(
0: 0F0 1F0 1B0 0F2 0B0 1F2 1B2 0B2
1: 0F1 1F1 1B1 0F3 0B1 1F3 1B3 0B3
)");
  EXPECT_EQ(Picture("weipipe_zb1", {2, 4}), R"(
0: 0F0 1F0 1I0 0F2 0I0 0W0 1F2 1I2 1W0 1W2 0I2 0W2
1: 0F1 1F1 1I1 1W1 0F3 0I1 0W1 1F3 1I3 1W3 0I3 0W3
)");
  EXPECT_EQ(Picture("weipipe_zb2", {2, 4}), R"(
0: 0F0 1F0 1I0 0I0 1W0 0F2 0W0 1F2 1I2 0I2 1W2 0W2
1: 0F1 1F1 1I1 0I1 0W1 1W1 0F3 1F3 1I3 0I3 0W3 1W3
)");
}

// A device's list: what moves and what it computes. "<w1" posts the receive of stage 1's weights,
// ".w1" waits for it, ">w1" sends them on, "-w1" lets them go; "g" is of gradients.
std::string ListOf(const Program& program, int device) {
  std::string list;
  for (const Instruction& i : program.instructions[device]) {
    const bool message = i.op == OpCode::kSend || i.op == OpCode::kReceive || i.op == OpCode::kWait;
    const char* kind = message && program.messages[i.arg].gradient ? "g" : "w";
    const char* mark = i.op == OpCode::kSend      ? ">"
                       : i.op == OpCode::kReceive ? "<"
                       : i.op == OpCode::kWait    ? "."
                       : i.op == OpCode::kRelease ? "-"
                                                  : nullptr;
    if (!list.empty()) list += " ";
    if (i.op == OpCode::kCompute) {
      list += ToString(i.action);
    } else if (mark != nullptr) {
      absl::StrAppend(&list, mark, kind, i.action.stage);
    } else {
      absl::StrAppend(&list, OpCodeName(i.op), i.action.stage);
    }
  }
  return list;
}

// Two devices, one round: device 0 owns stage 0 and device 1 stage 1.
TEST(WeiPipe, HopsOfTwoDevices) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(MakeOrDie("weipipe_naive", {2, 2}), {}));
  EXPECT_EQ(ListOf(p, 0), "<w1 >w0 0F0 .w1 1F0 1B0 -w1 >g1 >w0 0B0 >g0 <g0 .g0 step0 step1");
  EXPECT_EQ(CheckProgram(p), "");
}

struct Flow {
  int64_t weights = 0, gradients = 0;  // hops
  int held = 0;                        // weights of other stages on one device, the most at a time
  int64_t weights_between = 0, gradients_between = 0;  // hops to another node
};

// `node`: so many devices in line.
Flow FlowOf(absl::string_view scheme, const SchemeParams& sizes, int node = 1) {
  const Program p = Lower(MakeOrDie(scheme, sizes), {}).value();
  EXPECT_EQ(CheckProgram(p), "") << scheme << " " << sizes.devices << " " << sizes.micro_batches;
  EXPECT_TRUE(p.reductions.empty() && p.gathers.empty());
  Flow flow;
  for (const Message& m : p.messages) {
    EXPECT_TRUE(m.is_hop());
    if (p.schedule.weight_group == 1) {
      EXPECT_EQ(m.to_device, (m.from_device + 1) % sizes.devices);
    }
    ++(m.gradient ? flow.gradients : flow.weights);
    if (m.from_device / node == m.to_device / node) continue;
    ++(m.gradient ? flow.gradients_between : flow.weights_between);
  }
  for (const auto& list : p.instructions) {
    int held = 0;
    for (const Instruction& i : list) {
      held += i.op == OpCode::kReceive && !p.messages[i.arg].gradient;
      held -= i.op == OpCode::kRelease;
      flow.held = std::max(flow.held, held);
    }
    EXPECT_EQ(held, 0);
  }
  return flow;
}

// All hops are to the next device, and there are no collectives. A device has the weights in use
// and those that arrive, of each of the two slots at the most. A further round moves the sum of
// each stage's gradients P devices on, in the naive order twice as far, since it waits for the
// forwards. Of the weights of two slots owners, and devices that have them in the other slot, are
// sent none.
TEST(WeiPipe, HopsAndBuffers) {
  for (int p = 2; p <= 9; ++p) {
    for (int rounds = 2; rounds <= 4; ++rounds) {
      const Flow more = FlowOf("weipipe", {p, p * (rounds + 1)}),
                 flow = FlowOf("weipipe", {p, p * rounds});
      EXPECT_EQ(more.gradients - flow.gradients, p * p);
      EXPECT_EQ(more.weights - flow.weights,
                p % 2 == 0 ? 2 * (p - 1) * (p - 2) : (p - 1) * (2 * p - 3));
      EXPECT_LE(flow.held, 4);
      const Flow naive = FlowOf("weipipe_naive", {p, p * rounds});
      EXPECT_EQ(FlowOf("weipipe_naive", {p, p * (rounds + 1)}).gradients - naive.gradients,
                2 * p * p);
      EXPECT_LE(naive.held, 4);
    }
  }
}

// [turn] The longest work of a device in it: F = I = W = 1.
std::vector<int> LockStep(const Schedule& schedule) {
  const WeightRing ring = WeightRing::Make(schedule).value();
  std::vector<int> turns;
  for (int d = 0; d < schedule.num_devices(); ++d) {
    std::vector<int> work;
    for (size_t i = 0; i < schedule.order[d].size(); ++i) {
      work.resize(std::max<size_t>(work.size(), ring.turns[d][i] + 1));
      work[ring.turns[d][i]] += schedule.order[d][i].kind == ActionKind::kBackward ? 2 : 1;
    }
    turns.resize(std::max(turns.size(), work.size()));
    for (size_t t = 0; t < work.size(); ++t) turns[t] = std::max(turns[t], work[t]);
  }
  return turns;
}

// What docs/schedules.md prints, counted in the schedules and programs.
TEST(WeiPipe, ClosedFormsOfTheRing) {
  int checked = 0;
  const auto check = [&](const RingForm& form, const SchemeParams& sizes) {
    const FormulaValues values = ValuesOf(form.scheme, sizes).value();
    const auto value = [&](absl::string_view formula) {
      return EvaluateFormula(formula, values).value();
    };
    if (value(form.holds) == 0) return;
    SCOPED_TRACE(testing::Message() << form.scheme << " P=" << sizes.devices
                                    << " M=" << sizes.micro_batches << " g=" << sizes.group_size);
    const std::vector<int> turns = LockStep(MakeOrDie(form.scheme, sizes));
    EXPECT_EQ(turns.size(), value(form.turns));
    EXPECT_EQ(std::accumulate(turns.begin(), turns.end(), 0), value(form.lock_step));
    const Flow flow = FlowOf(form.scheme, sizes);
    EXPECT_EQ(flow.weights, value(form.weight_hops));
    EXPECT_EQ(flow.gradients, value(form.gradient_hops));
    ++checked;
  };
  for (const RingForm& form : RingForms()) {
    for (int p = 1; p <= 15; ++p) {
      for (int rounds = 1; rounds <= 4; ++rounds) {
        SchemeParams sizes{p, p * rounds};
        check(form, sizes);
        for (int g = 2; g < p && form.scheme == "tawpipe"; ++g) {
          sizes.group_size = g;
          if (p % g == 0) check(form, sizes);
        }
      }
    }
  }
  EXPECT_GT(checked, 200);
}

// Two nodes of two: device 2 owns stage 3 and is its node's gate for stage 0, which device 0 owns.
// It gives stage 0's weights to device 3, and adds up its gradients: the other node's sum, then
// those of device 3.
TEST(TawPipe, HopsOfAGate) {
  SchemeParams sizes{4, 4};
  sizes.group_size = 2;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program p, Lower(MakeOrDie("tawpipe", sizes), {}));
  EXPECT_EQ(ListOf(p, 2),
            ">w3 <w0 .w0 >w0 <w1 0F2 -w0 .w1 <w2 1F2 -w1 .w2 >w3 2F2 -w2 <w0 3F2 <w2 3B2 .w2 <g3 "
            "<w1 2B2 -w2 .w0 .w1 <g3 >w0 1B2 .g3 .g3 -w1 >g2 0B2 -w0 <g0 >g1 <g0 .g0 .g0 >g0 "
            "step0 step1 step2 step3");
  EXPECT_EQ(CheckProgram(p), "");
}

// To each other node a stage's weights come once for a round's forwards and once for its backwards,
// less what stays at its gate from the one to the other; its gradients once a round, and home.
TEST(TawPipe, HopsBetweenNodes) {
  for (int nodes = 2; nodes <= 5; ++nodes) {
    for (int g = 2; g <= 5; ++g) {
      for (int rounds = 2; rounds <= 4; ++rounds) {
        SchemeParams sizes{nodes * g, nodes * g * rounds};
        const Flow ring = FlowOf("weipipe", sizes, g);
        sizes.group_size = g;
        const Flow flow = FlowOf("tawpipe", sizes, g);
        const int P = sizes.devices, M = sizes.micro_batches, odd = P % 2;
        SCOPED_TRACE(testing::Message() << nodes << " nodes of " << g << ", rounds " << rounds);
        EXPECT_EQ(flow.weights_between,
                  (nodes - 1) * (2 * (P - 2) * rounds + 4 - odd * (rounds - 1)));
        EXPECT_EQ(flow.gradients_between, M * nodes - g);
        EXPECT_LT(flow.weights_between, ring.weights_between);
        EXPECT_LT(flow.gradients_between, ring.gradients_between);
      }
    }
  }
}

// A layer a stage, of hidden size h, in numbers of 2 bytes with gradients as wide: 12 h^2 weights,
// and s b tokens of h to the next stage.
CostTable LayerCosts(const Schedule& schedule, int64_t h, int64_t tokens) {
  CostTable costs = CostTable::Unit(schedule, Milliseconds(1));
  for (StageCost& stage : costs.stages) {
    StageMemory& m = stage.memory;
    m.numbers.weights = m.numbers.gradients = 2;
    m.weights = m.gradients = Bytes(2 * 12 * h * h);
    m.state = m.weights + m.gradients;
  }
  for (Bytes& bytes : costs.edge_bytes) bytes = Bytes(2 * tokens * h);
  return costs;
}

Trace Simulated(const char* scheme, const SchemeParams& sizes, int64_t h, int64_t tokens,
                BytesPerSecond bandwidth = BytesPerSecond(0), const Network& network = {}) {
  const Schedule schedule = MakeOrDie(scheme, sizes);
  CostTable costs = LayerCosts(schedule, h, tokens);
  costs.bandwidth = bandwidth;
  costs.network = network;
  const absl::StatusOr<Program> program = Lower(schedule, {});
  EXPECT_THAT(program, IsOk());
  return Simulate(*program, costs).value();
}

int64_t BytesOf(const Trace& trace) {
  int64_t bytes = 0;
  for (const DeviceTrace& d : trace.devices) bytes += d.bytes_sent.value();
  return bytes;
}

// Per micro-batch and stage at most two hops of weights and one of gradients, 36 h^2 numbers, where
// an activation pipeline sends 2 s b h. The sequence does not count. So weights are less from s b =
// 18 h on (12 h: one hop of weights against one activation), and a little before, since owners and
// the two slots save hops.
TEST(WeiPipe, CrossoverByFormula) {
  constexpr int kRounds = 16;
  for (const int p : {4, 8, 16}) {
    const SchemeParams sizes{p, p * kRounds};
    const Flow flow = FlowOf("weipipe", sizes);
    const double formula = 12.0 * static_cast<double>(flow.weights + flow.gradients) /
                           (2.0 * (p - 1) * p * kRounds);  // s b / h
    EXPECT_GT(formula, 12);
    EXPECT_LT(formula, 18);
    for (const int64_t h : {64, 128}) {
      const int64_t travelling = BytesOf(Simulated("weipipe", sizes, h, 1));
      EXPECT_EQ(BytesOf(Simulated("weipipe", sizes, h, 64 * h)), travelling);
      const auto tokens = static_cast<int64_t>(formula * static_cast<double>(h));
      EXPECT_LE(BytesOf(Simulated("1f1b", sizes, h, tokens)), travelling) << p << " " << h;
      EXPECT_GT(BytesOf(Simulated("1f1b", sizes, h, tokens + 1)), travelling) << p << " " << h;
    }
    std::printf("P=%d: weights travel with fewer bytes than activations from s b = %.2f h on\n", p,
                formula);
  }
}

// Links that carry a micro-batch's activation in twice a forward stall 1F1B; weights that are a
// quarter of its bytes hide beside the turn before. With a quarter of the tokens it is the reverse.
TEST(WeiPipe, TimeFollowsTheBytes) {
  constexpr int64_t kHidden = 128;
  const SchemeParams sizes{4, 64};
  const auto time = [&](const char* scheme, int64_t tokens, double forwards_per_activation) {
    const double bytes = 2.0 * static_cast<double>(tokens * kHidden);
    return Simulated(scheme, sizes, kHidden, tokens,
                     BytesPerSecond(bytes / (forwards_per_activation * 1e-3)))
        .makespan;
  };
  const int64_t many = 4 * 12 * kHidden, few = 3 * kHidden;
  EXPECT_LT(time("weipipe", many, 2), time("1f1b", many, 2));
  EXPECT_LT(time("1f1b", few, 1), time("weipipe", few, 1));
}

// Nodes of four with a link to the others that they share; inside, a hop of weights takes a
// twentieth of a forward. Groups wait less than the ring, whether its hops between nodes hide
// beside turns or not.
TEST(TawPipe, WaitsLessForSlowLinksBetweenNodes) {
  constexpr int64_t kHidden = 128;
  constexpr double kWeights = 2.0 * 12 * kHidden * kHidden;
  for (const int nodes : {2, 3, 4}) {
    SchemeParams sizes{4 * nodes, 16 * nodes};
    const auto exposed = [&](const char* scheme, double forwards_per_hop) {
      sizes.group_size = scheme == std::string("tawpipe") ? 4 : 0;
      const Network network = SharedUplinks(
          sizes.devices, 4, {"nvlink", Nanoseconds(0), BytesPerSecond(kWeights / 0.05e-3)},
          {"infiniband", Nanoseconds(0), BytesPerSecond(kWeights / (forwards_per_hop * 1e-3))});
      const Trace trace = Simulated(scheme, sizes, kHidden, 1, BytesPerSecond(0), network);
      return ToMilliseconds(trace.makespan) - 3 * sizes.micro_batches;  // of 1 ms a pass
    };
    for (const double hop : {0.05, 0.25, 0.5, 1.0, 2.0, 4.0}) {
      const double ring = exposed("weipipe", hop), groups = exposed("tawpipe", hop);
      std::printf("%d nodes, a hop between them in %.2f forwards: exposed %.2f ms, ring %.2f ms\n",
                  nodes, hop, groups, ring);
      EXPECT_LT(groups, ring) << nodes << " " << hop;
    }
  }
}

TEST(WeiPipe, Refusals) {
  EXPECT_EQ(Refusal("weipipe", {4, 6}),
            "weipipe --micro_batches=6: each device runs as many; use a multiple of --devices=4; "
            "nearest: 4 or 8");
  SchemeParams nodes{4, 4};
  nodes.group_size = 3;
  EXPECT_EQ(
      Refusal("tawpipe", nodes),
      "tawpipe --group_size=3: the devices of a node must divide --devices=4 into two nodes or "
      "more; 0 is the most that do");
  SchemeParams groups{4, 4};
  groups.data_parallel = 2;
  EXPECT_EQ(Refusal("weipipe", groups),
            "weipipe --data_parallel=2: the devices of the ring are its data-parallel copies "
            "already; use --data_parallel=1");
}

}  // namespace
}  // namespace pipelab
