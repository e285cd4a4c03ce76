// The executor with integer stages: every schedule gives exactly what no pipeline gives.
#include "pipelines/runtime/executor.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "tests/support/fake_pipeline.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kSteps = 2;

// What is wrong with a measured trace of `program`; empty when nothing is.
std::string TraceErrors(const Program& program, const Trace& trace) {
  if (trace.origin != TraceOrigin::kMeasured) return "origin";
  if (trace.devices.size() != program.instructions.size()) return "devices";
  int64_t last = 0, messages = 0, bytes = 0, library = 0, computes = 0;
  for (size_t d = 0; d < trace.devices.size(); ++d) {
    const DeviceTrace& device = trace.devices[d];
    const auto& list = program.instructions[d];
    const std::string where = absl::StrCat("device ", d, ": ");
    if (device.spans.size() != list.size() || device.library_ns.size() != list.size()) {
      return where + "spans";
    }
    if (!device.order.empty()) return where + "not in the order of the list";
    int64_t end = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      const Span& span = device.spans[i];
      if (span.begin_ns < end || span.end_ns < span.begin_ns) return where + "spans overlap";
      if (span.cpu_ns < 0) return where + "processor time";
      end = span.end_ns;
      library += device.library_ns[i];
      computes += list[i].op == OpCode::kCompute || list[i].op == OpCode::kStep;
    }
    last = std::max(last, end);
    messages += device.messages_sent;
    bytes += device.bytes_sent.value();
  }
  if (last > trace.makespan.value()) return "a span after the end";
  if (messages != static_cast<int64_t>(program.messages.size())) return "messages";
  int64_t want_bytes = 0;  // a fake stage's micro-batch has 12 rows of 3 floats
  for (const Message& m : program.messages) {
    if (m.is_hop()) {
      want_bytes += 3 * 4;
      continue;
    }
    const StageGraph::Edge& e = program.schedule.stages.edges[m.edge];
    const int rows = 12 * std::min(program.schedule.MicroBatchSize(e.from),
                                   program.schedule.MicroBatchSize(e.to));
    want_bytes += rows * (m.row_end - m.row_begin) / m.row_parts * 3 * 4;
  }
  if (bytes != want_bytes) return absl::StrCat(bytes, " bytes, not ", want_bytes);
  if (library != computes) return "library time";  // a fake stage counts 1 ns a pass
  return "";
}

// Runs the lowered schedule and compares; the name of the schedule is in every message.
void ExpectEqualsSerial(const Schedule& schedule, const LoweringOptions& lowering,
                        const std::string& name) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(schedule, lowering));
  for (bool blocking_sends : {false, true}) {
    const std::string context = absl::StrCat(name, blocking_sends ? ", blocking sends" : "");
    FakePipeline pipeline(&program, {.ties = lowering.ties, .blocking_sends = blocking_sends});
    ASSERT_THAT(pipeline.created(), IsOk()) << context;
    for (int step = 1; step <= kSteps; ++step) {
      const auto trace = pipeline.RunStep();
      ASSERT_THAT(trace, IsOk()) << context;
      ASSERT_EQ(TraceErrors(program, *trace), "") << context;
      ASSERT_EQ(pipeline.WrongParameters(step), "") << context << ", step " << step;
    }
    EXPECT_EQ(pipeline.LeftAfterwards(), Bytes(0)) << context;
  }
}

// Chains, a diamond, skip edges, groups of different size, two replicas, slices, split backward,
// recompute, in random orders.
TEST(Executor, RandomOrdersEqualSerial) {
  int number = 0;
  for (const RandomShape& shape : Shapes()) {
    LoweringOptions lowering;
    if (shape.stages.num_stages() > 1) {
      lowering.ties = {{"embedding", {0, shape.stages.num_stages() - 1}}};
    }
    for (uint64_t seed = 0; seed < 3; ++seed) {
      lowering.norm_values = seed == 1 ? shape.stages.num_stages() + 2 : 0;
      ExpectEqualsSerial(RandomOrder(shape, seed), lowering,
                         absl::StrCat("shape ", number, ", seed ", seed));
    }
    ++number;
  }
}

TEST(Executor, AllSchemesEqualSerial) {
  for (const Scheme& scheme : Catalog()) {
    if (scheme.asynchronous) continue;                   // tests/asynchronous_test.cc
    if ((scheme.options & kForwardOnly) != 0) continue;  // tests/inference_test.cc
    int accepted = 0;
    for (int devices : {1, 2, 3, 4}) {
      for (int micro_batches : {1, 2, 4, 6, 8}) {
        for (bool recompute : {false, true}) {
          const auto schedule = MakeSchedule(
              scheme.name,
              {.devices = devices, .micro_batches = micro_batches, .recompute = recompute});
          if (!schedule.ok()) continue;
          ++accepted;
          LoweringOptions lowering;
          if (schedule->num_stages() > 1) lowering.ties = {{"e", {0, schedule->num_stages() - 1}}};
          if (recompute) lowering.norm_values = schedule->num_stages() + 1;
          ExpectEqualsSerial(*schedule, lowering,
                             absl::StrCat(scheme.name, ", P = ", devices, ", M = ", micro_batches,
                                          recompute ? ", recompute" : ""));
        }
      }
    }
    EXPECT_GE(accepted, 4) << scheme.name;
  }
}

// Messages in calls, whose sends are waited for at their end.
TEST(Executor, CallsEqualSerial) {
  for (const bool interleaved : {false, true}) {
    for (const int micro_batches : {3, 6}) {
      for (const bool recompute : {false, true}) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(
            const Schedule schedule,
            MakeSchedule(interleaved ? "interleaved" : "1f1b",
                         {.devices = 3, .micro_batches = micro_batches, .recompute = recompute}));
        LoweringOptions lowering;
        lowering.ties = {{"e", {0, schedule.num_stages() - 1}}};
        lowering.eager_reductions = false;
        lowering.calls = interleaved ? MessageCalls::kBothNeighbours : MessageCalls::kOneNeighbour;
        ExpectEqualsSerial(
            schedule, lowering,
            absl::StrCat(interleaved ? "interleaved" : "1f1b", " in calls, M = ", micro_batches));
      }
    }
  }
}

// Groups of two, three and twice two (parts of the three parameters are ragged), every sharding,
// reductions at the end and eager, gathers ahead or not; transports with buffers and without, where
// collectives block their caller.
TEST(Executor, ShardedStagesEqualSerial) {
  int programs = 0;
  for (const Scheme& scheme : Catalog()) {
    for (int data_parallel : {1, 2, 3, 4}) {
      SchemeParams params;
      params.devices = data_parallel > 2 ? 2 : 4;
      params.micro_batches = 4;
      params.data_parallel = data_parallel;
      params.recompute = data_parallel == 3;
      const auto schedule = MakeSchedule(scheme.name, params);
      if (!schedule.ok() || scheme.asynchronous || schedule->forward_only) continue;
      for (Sharding sharding :
           {Sharding::kReplicated, Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
        // Each stage of a ring has an owner.
        if (schedule->weights_travel && sharding != Sharding::kFully) continue;
        for (bool hard : {false, true}) {
          LoweringOptions lowering;
          lowering.ties = {{"e", {0, schedule->num_stages() - 1}}};
          lowering.sharding = sharding;
          const bool sets = data_parallel == 4 && sharding != Sharding::kReplicated;
          lowering.shards = sets ? 2 : 0;
          lowering.eager_reductions = hard;
          lowering.overlap = hard;
          lowering.norm_values = hard ? schedule->num_stages() + 1 : 0;
          lowering.residency = data_parallel == 3 ? Residency::kMicroBatch : Residency::kRun;
          ExpectEqualsSerial(*schedule, lowering,
                             absl::StrCat(scheme.name, ", D = ", data_parallel, ", ",
                                          ShardingName(sharding), hard ? ", eager" : ""));
          if (HasFatalFailure()) return;
          ++programs;
        }
      }
    }
  }
  EXPECT_GT(programs, 400);
}

TEST(Executor, WithoutTraceOnlyTotals) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule s,
                               MakeSchedule("1f1b", {.devices = 2, .micro_batches = 4}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(s, {}));
  FakePipeline pipeline(&program, {.trace = false});
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, pipeline.RunStep());
  EXPECT_GT(trace.makespan.value(), 0);
  ASSERT_EQ(trace.devices.size(), 2u);
  for (const DeviceTrace& device : trace.devices) {
    EXPECT_TRUE(device.spans.empty());
    EXPECT_EQ(device.messages_sent, 4);
    EXPECT_EQ(device.bytes_sent, Bytes(4 * 144));
    EXPECT_GT(device.peak_activation.value(), 0);
  }
  EXPECT_EQ(pipeline.WrongParameters(1), "");
}

// The charges, by hand. A tensor of a fake stage has 12 x 3 floats: 144 bytes. A stage keeps one
// for each micro-batch in flight.
TEST(Executor, PeaksFollowTheProgram) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program,
                               Lower(ChainOf(2, {"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"}), {}));
  FakePipeline pipeline(&program, {});
  for (int step = 0; step < 2; ++step) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, pipeline.RunStep());
    // Device 0 in its first backward: two kept, the gradient that came and the combined one.
    EXPECT_EQ(trace.devices[0].peak_activation, Bytes(4 * 144));
    // Device 1 posts both receives before it starts: two; then its first forward adds what it
    // keeps. In the first backward: two kept, the loss's gradient and the result.
    EXPECT_EQ(trace.devices[1].peak_activation, Bytes(4 * 144));
    EXPECT_EQ(trace.devices[0].peak_state, Bytes(2 * 12));
  }
}

// A receive is paid for from its post, long before its message comes; a send ends the payment.
TEST(Executor, ReceivesArePaidForWhenPosted) {
  Program program;
  program.schedule = ChainOf(3, {"0F0 0F1 0F2", "1F0 1F1 1F2"});
  const auto instruction = [](OpCode op, int stage, int micro_batch, int arg) {
    Instruction i;
    i.op = op;
    i.action.stage = static_cast<int16_t>(stage);
    i.action.micro_batch = micro_batch;
    i.arg = arg;
    return i;
  };
  program.instructions.resize(2);
  for (int m = 0; m < 3; ++m) {
    Message message;
    message.to_device = 1;
    message.micro_batch = m;
    program.messages.push_back(message);
    program.instructions[0].push_back(instruction(OpCode::kCompute, 0, m, -1));
    program.instructions[0].push_back(instruction(OpCode::kSend, 0, m, m));
    program.instructions[1].push_back(instruction(OpCode::kReceive, 0, m, m));
  }
  for (int m = 0; m < 3; ++m) {
    program.instructions[1].push_back(instruction(OpCode::kWait, 0, m, m));
    program.instructions[1].push_back(instruction(OpCode::kCompute, 1, m, -1));
  }
  FakePipeline pipeline(&program, {});
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, pipeline.RunStep());
  EXPECT_EQ(trace.devices[0].peak_activation, Bytes((3 + 1) * 144)) << "kept ones and one output";
  // Posted or kept, each micro-batch costs one tensor; a forward holds its input and what it keeps.
  EXPECT_EQ(trace.devices[1].peak_activation, Bytes((3 + 1) * 144));
  EXPECT_EQ(pipeline.arena(0).current_transient(), Bytes(3 * 144));
  EXPECT_EQ(pipeline.arena(1).current_transient(), Bytes(3 * 144));
}

// What the simulator needs to know of fake stages. They combine their inputs into one tensor of
// that size, x, and let go of them; where they drop x, they keep the inputs.
CostTable FakeCosts(const Schedule& s) {
  CostTable costs = CostTable::Unit(s);
  costs.edge_bytes.assign(s.stages.edges.size(), Bytes(12 * 3 * 4 * s.num_slices));
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    const Bytes x = Bytes(12 * 3 * 4 * s.num_slices * s.MicroBatchSize(stage) / s.GroupSize(stage));
    const int64_t in = static_cast<int64_t>(s.stages.in_edges[stage].size());
    int64_t back = 0;  // input gradients
    for (int e : s.stages.in_edges[stage]) {
      if (!s.stages.edges[e].gradient.none()) ++back;
    }
    const int64_t out = static_cast<int64_t>(s.stages.out_edges[stage].size());
    StageMemory m;
    m.kept = x - x * in;
    m.kept_for_weight = x * 2;
    m.forward_peak = m.forward_drop_peak = x * (1 + out);
    m.recompute_peak = x;
    m.backward_peak = m.backward_input_peak = x * (1 + back);
    costs.stages[stage].memory = m;
  }
  return costs;
}

// Predicted memory and traffic are exact, also where rows come in parts or stay.
TEST(Executor, PeaksAreThoseOfTheSimulator) {
  int number = 0;
  for (const RandomShape& shape : Shapes()) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      LoweringOptions lowering;
      lowering.norm_values = seed == 2 ? 1000 : 0;  // higher than any activation
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program,
                                   Lower(RandomOrder(shape, seed), lowering));
      FakePipeline pipeline(&program, {});
      ASSERT_THAT(pipeline.created(), IsOk());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace measured, pipeline.RunStep());
      PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace predicted,
                                   Simulate(program, FakeCosts(program.schedule)));
      for (size_t d = 0; d < measured.devices.size(); ++d) {
        EXPECT_EQ(predicted.devices[d].peak_activation, measured.devices[d].peak_activation)
            << "shape " << number << ", seed " << seed << ", device " << d;
        EXPECT_EQ(predicted.devices[d].bytes_sent, measured.devices[d].bytes_sent);
      }
    }
    ++number;
  }
}

// Groups of 1 and 2: the receiver of two halves pays for both, and for the whole while it copies.
TEST(Executor, PartsAreAssembled) {
  RandomShape shape;
  shape.stages = StageGraph::Chain(2);
  shape.placement.num_devices = 3;
  shape.placement.groups = {{{0, 1}, {2}}};
  shape.placement.replica_of_micro_batch = {0};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(RandomOrder(shape, 0), {}));
  FakePipeline pipeline(&program, {});
  PIPELAB_ASSERT_OK_AND_ASSIGN(Trace trace, pipeline.RunStep());
  EXPECT_EQ(pipeline.WrongParameters(1), "");
  // Forward: halves and whole, 2 x 144; backward: kept, loss gradient, result.
  EXPECT_EQ(trace.devices[2].peak_activation, Bytes(3 * 144));
  EXPECT_EQ(trace.devices[2].bytes_sent, Bytes(144));
  EXPECT_EQ(trace.devices[2].messages_sent, 2);
  EXPECT_EQ(trace.devices[0].bytes_sent, Bytes(72));
}

}  // namespace
}  // namespace pipelab
