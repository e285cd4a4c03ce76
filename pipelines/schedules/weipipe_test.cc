#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/program_checker.h"
#include "pipelines/schedules/scheme_testing.h"
#include "pipelines/sim/simulate.h"
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
  EXPECT_EQ(ListOf(p, 0), "<w1 >w0 0F0 .w1 1F0 1B0 >g1 -w1 0B0 >w0 <g0 >g0 .g0 step0 step1");
  EXPECT_EQ(CheckProgram(p), "");
}

struct Flow {
  int64_t weights = 0, gradients = 0;  // hops
  int held = 0;                        // weights of others on one device, the most at a time
  int sums = 0;                        // the same of gradients: its own, and those that come
};

Flow FlowOf(const Program& p) {
  Flow flow;
  for (const Message& m : p.messages) {
    EXPECT_TRUE(m.is_hop());
    EXPECT_EQ(m.to_device, (m.from_device + 1) % p.schedule.num_devices());
    ++(m.gradient ? flow.gradients : flow.weights);
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

// All hops are to the next device; the naive order needs two weight buffers, the one in use and the
// one that arrives, and the interleaved order two for each of its flows. No collectives.
TEST(WeiPipe, HopsAndBuffers) {
  for (int p = 2; p <= 9; ++p) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      for (const char* scheme : {"weipipe_naive", "weipipe"}) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program,
                                     Lower(MakeOrDie(scheme, {p, p * rounds}), {}));
        ASSERT_EQ(CheckProgram(program), "") << scheme << " " << p << " " << rounds;
        EXPECT_TRUE(program.reductions.empty() && program.gathers.empty());
        const Flow flow = FlowOf(program);
        EXPECT_LE(flow.held, std::string(scheme) == "weipipe" ? 4 : 3) << scheme << " " << p;
        std::printf("%s P=%d rounds=%d: %ld weights, %ld gradients, %d held\n", scheme, p, rounds,
                    static_cast<long>(flow.weights), static_cast<long>(flow.gradients), flow.held);
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
                BytesPerSecond bandwidth = BytesPerSecond(0)) {
  const Schedule schedule = MakeOrDie(scheme, sizes);
  CostTable costs = LayerCosts(schedule, h, tokens);
  costs.bandwidth = bandwidth;
  const absl::StatusOr<Program> program = Lower(schedule, {});
  EXPECT_THAT(program, IsOk());
  return Simulate(*program, costs).value();
}

int64_t BytesOf(const Trace& trace) {
  int64_t bytes = 0;
  for (const DeviceTrace& d : trace.devices) bytes += d.bytes_sent.value();
  return bytes;
}

// Per micro-batch and stage, weights go on twice and gradients once, 36 h^2 numbers, where an
// activation pipeline sends 2 s b h: the sequence does not count, and weights are less beyond s b =
// 18 h, or 12 h where one flow of weights is set against activations in one direction.
TEST(WeiPipe, CrossoverByFormula) {
  constexpr int kDevices = 8, kRounds = 64;
  const SchemeParams sizes{kDevices, kDevices * kRounds};
  for (const int64_t h : {64, 128}) {
    const int64_t travelling = BytesOf(Simulated("weipipe", sizes, h, 1));
    EXPECT_EQ(BytesOf(Simulated("weipipe", sizes, h, 64 * h)), travelling);
    const double per_turn = static_cast<double>(travelling) / (kDevices * kDevices * kRounds);
    EXPECT_NEAR(per_turn / static_cast<double>(2 * 36 * h * h), 1, 0.35);
    int64_t crossover = 0;
    for (int64_t tokens = h; crossover == 0; tokens += h / 8) {
      if (BytesOf(Simulated("1f1b", sizes, h, tokens)) > travelling) crossover = tokens;
    }
    std::printf("h=%ld: crossover at s b = %.2f h; bytes a turn %.3f of 36 h^2\n",
                static_cast<long>(h), static_cast<double>(crossover) / static_cast<double>(h),
                per_turn / static_cast<double>(2 * 36 * h * h));
  }
}

TEST(WeiPipe, Refusals) {
  EXPECT_EQ(Refusal("weipipe", {4, 6}),
            "weipipe --micro_batches=6: each device runs as many; use a multiple of --devices=4; "
            "nearest: 4 or 8");
  SchemeParams groups{4, 4};
  groups.data_parallel = 2;
  EXPECT_EQ(Refusal("weipipe", groups),
            "weipipe --data_parallel=2: the devices of the ring are its data-parallel copies "
            "already; use --data_parallel=1");
}

}  // namespace
}  // namespace pipelab
