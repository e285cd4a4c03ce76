#include "pipelines/analysis/analysis.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

ExecutedInstruction MakeSpan(OpCode op, ActionKind kind, int64_t begin, int64_t end,
                             int32_t arg = -1) {
  ExecutedInstruction s;
  s.op = op;
  s.action.kind = kind;
  s.arg = arg;
  s.begin_ns = begin;
  s.end_ns = end;
  s.cpu_ns = end - begin;
  return s;
}

ExecutedInstruction Compute(ActionKind kind, int64_t begin, int64_t end) {
  return MakeSpan(OpCode::kCompute, kind, begin, end);
}

// A program that is what ran.
struct ByHand {
  Program program;
  Trace trace;

  ByHand& Add(const std::vector<ExecutedInstruction>& spans) {
    std::vector<Instruction>& list = program.instructions.emplace_back();
    DeviceTrace& device = trace.devices.emplace_back();
    for (const ExecutedInstruction& s : spans) {
      list.push_back(s);
      device.spans.push_back(s);
    }
    return *this;
  }
  absl::StatusOr<TraceAnalysis> Analyzed() const { return Analyze(program, trace); }
  absl::StatusOr<std::vector<MessageTiming>> Matched() const {
    return MatchMessages(program, trace);
  }
};

// Two devices, one micro-batch: forward 10 ns, backward 20 ns each, with every other kind of span.
//   device 0: F [0,10) send [10,12) recv [12,13) wait [15,55) B [55,75) reduce [75,80) step [80,90)
//   device 1: wait [2,20) F [20,30) B [30,50) send [50,53) reduce [60,80) step [80,85)
ByHand TwoDevices() {
  ByHand r;
  r.trace.origin = TraceOrigin::kMeasured;
  r.trace.makespan = Nanoseconds(95);  // 5 more than the spans: the last device's tail
  r.Add({
      Compute(ActionKind::kForward, 0, 10),
      MakeSpan(OpCode::kSend, ActionKind::kForward, 10, 12, 0),
      MakeSpan(OpCode::kReceive, ActionKind::kBackward, 12, 13, 1),
      MakeSpan(OpCode::kWait, ActionKind::kBackward, 15, 55, 1),
      Compute(ActionKind::kBackward, 55, 75),
      MakeSpan(OpCode::kReduce, ActionKind::kForward, 75, 80, 0),
      MakeSpan(OpCode::kStep, ActionKind::kStep, 80, 90),
  });
  r.Add({
      MakeSpan(OpCode::kWait, ActionKind::kForward, 2, 20, 0),
      Compute(ActionKind::kForward, 20, 30),
      Compute(ActionKind::kBackward, 30, 50),
      MakeSpan(OpCode::kSend, ActionKind::kBackward, 50, 53, 1),
      MakeSpan(OpCode::kReduce, ActionKind::kForward, 60, 80, 0),
      MakeSpan(OpCode::kStep, ActionKind::kStep, 80, 85),
  });
  r.program.messages.resize(2);
  r.program.messages[0].from_device = 0;
  r.program.messages[0].to_device = 1;
  r.program.messages[1].from_device = 1;
  r.program.messages[1].to_device = 0;
  r.program.messages[1].gradient = true;
  return r;
}

TEST(AnalyzeTest, BubbleIsOverTheIntervalOfCompute) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, TwoDevices().Analyzed());
  EXPECT_EQ(a.interval_begin_ns, 0);
  EXPECT_EQ(a.interval_end_ns, 75);  // reductions and steps are not in it
  EXPECT_DOUBLE_EQ(a.devices[0].bubble, 1 - 30.0 / 75);
  EXPECT_DOUBLE_EQ(a.devices[1].bubble, 1 - 30.0 / 75);
  EXPECT_DOUBLE_EQ(a.overall.bubble, 1 - 60.0 / 150);
}

TEST(AnalyzeTest, PartsAddUpToTheStep) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, TwoDevices().Analyzed());
  EXPECT_EQ(a.step_time.value(), 95);
  const Breakdown& d0 = a.devices[0].wall;
  EXPECT_EQ(d0.compute.value(), 30);
  EXPECT_EQ(d0.communication.value(), 3);
  EXPECT_EQ(d0.waiting.value(), 40);
  EXPECT_EQ(d0.reduction.value(), 5);
  EXPECT_EQ(d0.optimizer.value(), 10);
  EXPECT_EQ(d0.dispatch.value(), 2);
  EXPECT_EQ(d0.ends.value(), 5);
  const Breakdown& d1 = a.devices[1].wall;
  EXPECT_EQ(d1.dispatch.value(), 7);
  EXPECT_EQ(d1.ends.value(), 12);
  for (const DeviceAnalysis& d : a.devices) EXPECT_EQ(d.wall.Total(), a.step_time);
  EXPECT_EQ(a.overall.wall.Total().value(), 2 * 95);
}

// Instruction n takes 2^n ns, so a sum says which it is of.
TEST(AnalyzeTest, EachInstructionHasItsPart) {
  constexpr int kOps = static_cast<int>(kLastOpCode) + 1;
  std::vector<ExecutedInstruction> spans;
  for (int op = 0; op < kOps; ++op) {
    const int64_t begin = (int64_t{1} << op) - 1;
    spans.push_back(MakeSpan(static_cast<OpCode>(op), ActionKind::kForward, begin, 2 * begin + 1));
  }
  const auto sum = [](const std::vector<OpCode>& ops) {
    int64_t time = 0;
    for (const OpCode op : ops) time += int64_t{1} << static_cast<int>(op);
    return Nanoseconds(time);
  };
  ByHand run;
  run.Add(spans).trace.makespan = Nanoseconds((int64_t{1} << kOps) - 1);  // the last span's end
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, run.Analyzed());
  const Breakdown& wall = a.devices[0].wall;
  EXPECT_EQ(wall.compute, sum({OpCode::kCompute}));
  EXPECT_EQ(wall.communication, sum({OpCode::kOffload, OpCode::kReload, OpCode::kSend,
                                     OpCode::kReceive, OpCode::kSynchronise}));
  EXPECT_EQ(wall.waiting, sum({OpCode::kWait, OpCode::kHostWait, OpCode::kFill}));
  EXPECT_EQ(wall.reduction,
            sum({OpCode::kReduce, OpCode::kReduceWait, OpCode::kGather, OpCode::kGatherWait,
                 OpCode::kNorm, OpCode::kNormWait, OpCode::kRelease}));
  EXPECT_EQ(wall.optimizer, sum({OpCode::kStep}));
  EXPECT_EQ(wall.dispatch + wall.ends, Nanoseconds(0));
  EXPECT_EQ(wall.Total(), a.step_time);
}

TEST(AnalyzeTest, ProcessorTimeIsApartFromWallTime) {
  ByHand r = TwoDevices();
  std::vector<DeviceTrace>& devices = r.trace.devices;
  devices[0].spans[0].cpu_ns = 4;  // the core was taken away for 6 of 10 ns
  devices[0].library_ns = {3, 0, 0, 0, 15, 0, 0};
  devices[1].library_ns = {0, 0, 0, 0, 20, 0};  // a reduction: not compute
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, r.Analyzed());
  EXPECT_EQ(a.devices[0].wall.compute.value(), 30);
  EXPECT_EQ(a.devices[0].cpu.compute.value(), 24);
  EXPECT_EQ(a.devices[0].cpu.dispatch.value(), 0);
  EXPECT_DOUBLE_EQ(a.devices[0].library_share, 18.0 / 30);
  EXPECT_DOUBLE_EQ(a.devices[1].library_share, 0);
  EXPECT_DOUBLE_EQ(a.overall.library_share, 18.0 / 60);

  r.trace.origin = TraceOrigin::kReplayed;  // has no other time than its own
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis replayed, r.Analyzed());
  EXPECT_EQ(replayed.devices[0].cpu.compute.value(), 30);
}

TEST(AnalyzeTest, TotalsAreSumsAndPeaksAreMaxima) {
  ByHand r = TwoDevices();
  std::vector<DeviceTrace>& devices = r.trace.devices;
  devices[0].peak_activation = Bytes(100);
  devices[1].peak_activation = Bytes(70);
  devices[0].peak_state = Bytes(5);
  devices[1].peak_state = Bytes(6);
  devices[0].bytes_sent = Bytes(8);
  devices[1].bytes_sent = Bytes(9);
  devices[0].messages_sent = devices[1].messages_sent = 1;
  devices[0].collective_bytes = Bytes(3);
  devices[1].collective_bytes = Bytes(4);
  r.program.instructions[0][1] = r.program.instructions[0][0];  // a second forward, of no time
  devices[0].spans[1] = {10, 10, 0};
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, r.Analyzed());
  EXPECT_EQ(a.overall.peak_activation.value(), 100);
  EXPECT_EQ(a.overall.peak_state.value(), 6);
  EXPECT_EQ(a.overall.bytes_sent.value(), 17);
  EXPECT_EQ(a.overall.messages_sent, 2);
  EXPECT_EQ(a.overall.actions, 5);
  EXPECT_EQ(a.devices[0].collective_bytes.value(), 3);
  EXPECT_EQ(a.overall.collective_bytes.value(), 7);
  EXPECT_EQ(a.devices[0].peak_in_flight, 2);
  EXPECT_EQ(a.devices[1].peak_in_flight, 1);
  EXPECT_EQ(a.overall.peak_in_flight, 2);
  EXPECT_EQ(a.devices[1].bytes_sent.value(), 9);
}

TEST(AnalyzeTest, RecomputeIsComputeAndAnAsynchronousStepIsNot) {
  ByHand r;
  r.trace.makespan = Nanoseconds(40);
  r.Add({Compute(ActionKind::kRecompute, 0, 10), Compute(ActionKind::kBackwardInput, 10, 20),
         Compute(ActionKind::kBackwardWeight, 20, 30), Compute(ActionKind::kStep, 30, 40)});
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, r.Analyzed());
  EXPECT_EQ(a.devices[0].wall.compute.value(), 30);
  EXPECT_EQ(a.devices[0].wall.optimizer.value(), 10);
  EXPECT_EQ(a.interval_end_ns, 30);
  EXPECT_DOUBLE_EQ(a.overall.bubble, 0);
}

TEST(AnalyzeTest, WithoutSpansThereAreTotalsOnly) {
  ByHand r = TwoDevices();
  r.trace.makespan = Nanoseconds(7);
  for (DeviceTrace& device : r.trace.devices) device.DropTimes();
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, r.Analyzed());
  EXPECT_FALSE(a.has_spans);
  EXPECT_EQ(a.step_time.value(), 7);
  EXPECT_EQ(a.overall.bubble, 0);
  EXPECT_EQ(a.devices[1].wall.ends.value(), 7);
  EXPECT_EQ(a.devices[1].bubble, 0);
}

TEST(AnalyzeTest, ADeviceThatNeverComputesIsAllBubble) {
  ByHand r = TwoDevices();
  r.Add({});
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, r.Analyzed());
  EXPECT_DOUBLE_EQ(a.devices[2].bubble, 1);
  EXPECT_DOUBLE_EQ(a.overall.bubble, 1 - 60.0 / 225);
  // Also where the others' work lasts a nanosecond.
  ByHand brief;
  brief.trace.makespan = Nanoseconds(95);
  brief.Add({Compute(ActionKind::kForward, 0, 1)}).Add({});
  PIPELAB_ASSERT_OK_AND_ASSIGN(a, brief.Analyzed());
  EXPECT_DOUBLE_EQ(a.devices[1].bubble, 1);
}

TEST(AnalyzeTest, RefusesWhatIsNoTrace) {
  ByHand overlap = TwoDevices();
  overlap.trace.devices[1].spans[2].begin_ns = 29;
  EXPECT_THAT(overlap.Analyzed(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device 1, span 2 (29 to 50 ns) begins before")));
  ByHand backwards = TwoDevices();
  backwards.trace.devices[0].spans[6].end_ns = 79;
  EXPECT_THAT(backwards.Analyzed(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 0, span 6")));
  ByHand negative = TwoDevices();
  negative.trace.devices[0].spans[1].cpu_ns = -1;
  EXPECT_THAT(negative.Analyzed(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("span 1")));
  ByHand library = TwoDevices();
  library.trace.devices[0].library_ns = {0, -1, 0, 0, 0, 0, 0};
  EXPECT_THAT(library.Analyzed(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("span 1 (10 to 12 ns) has a negative")));
  ByHand unknown = TwoDevices();
  unknown.program.instructions[1][1].op = static_cast<OpCode>(static_cast<int>(kLastOpCode) + 1);
  EXPECT_THAT(unknown.Analyzed(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device 1, span 1 (20 to 30 ns) has an unknown instruction")));
  ByHand tight = TwoDevices();
  tight.trace.makespan = Nanoseconds(90);
  EXPECT_THAT(tight.Analyzed(), IsOk());
  ByHand shorter = TwoDevices();
  shorter.trace.makespan = Nanoseconds(89);
  EXPECT_THAT(shorter.Analyzed(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("makespan")));
}

TEST(InFlightTest, CountsForwardsUntilTheirWeightGradient) {
  ByHand r;
  r.Add({
      Compute(ActionKind::kForward, 0, 10),
      Compute(ActionKind::kForward, 10, 20),
      Compute(ActionKind::kBackwardInput, 20, 30),
      Compute(ActionKind::kForward, 30, 40),
      Compute(ActionKind::kBackwardWeight, 40, 50),
      Compute(ActionKind::kBackward, 50, 60),
  });
  std::vector<std::pair<int64_t, int>> seen;
  for (const InFlightPoint& p : InFlight(SpansOf(r.program, r.trace, 0))) {
    seen.emplace_back(p.time_ns, p.count);
  }
  const std::vector<std::pair<int64_t, int>> expected = {
      {0, 1}, {10, 2}, {30, 3}, {50, 2}, {60, 1}};
  EXPECT_EQ(seen, expected);
}

// A forward at the host is not held: from the end of the wait for its offload to the begin of its
// reload. Without backwards a forward holds its memory while it runs.
TEST(InFlightTest, LeavesOutWhatIsAtTheHostAndForwardsAlone) {
  const auto points = [](const std::vector<ExecutedInstruction>& spans) {
    ByHand r;
    r.Add(spans);
    std::vector<std::pair<int64_t, int>> seen;
    for (const InFlightPoint& p : InFlight(SpansOf(r.program, r.trace, 0))) {
      seen.emplace_back(p.time_ns, p.count);
    }
    return seen;
  };
  using Points = std::vector<std::pair<int64_t, int>>;
  EXPECT_EQ(points({
                Compute(ActionKind::kForward, 0, 10),
                MakeSpan(OpCode::kOffload, ActionKind::kOffload, 10, 11),
                MakeSpan(OpCode::kHostWait, ActionKind::kOffload, 11, 20),
                MakeSpan(OpCode::kReload, ActionKind::kReload, 30, 31),
                MakeSpan(OpCode::kHostWait, ActionKind::kReload, 31, 40),
                Compute(ActionKind::kBackward, 40, 60),
            }),
            (Points{{0, 1}, {20, 0}, {30, 1}, {60, 0}}));
  EXPECT_EQ(points({
                Compute(ActionKind::kForward, 0, 10),
                Compute(ActionKind::kForward, 10, 20),
                MakeSpan(OpCode::kStep, ActionKind::kStep, 20, 30),
            }),
            (Points{{0, 1}, {10, 0}, {10, 1}, {20, 0}}));
}

TEST(MatchMessagesTest, FindsBothEnds) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, TwoDevices().Matched());
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].from_device, 0);
  EXPECT_EQ(m[0].to_device, 1);
  EXPECT_FALSE(m[0].gradient);
  EXPECT_EQ(m[0].producer, 0);
  EXPECT_EQ(m[0].send, 1);
  EXPECT_EQ(m[0].wait, 0);
  EXPECT_EQ(m[0].consumer, 1);
  EXPECT_TRUE(m[1].gradient);
  EXPECT_EQ(m[1].producer, 2);
  EXPECT_EQ(m[1].consumer, 4);
}

// A message that one end alone has seen is left out; what several waits bring goes to one pass.
TEST(MatchMessagesTest, LeavesOutWhatHasOneEnd) {
  ByHand r = TwoDevices();
  r.program.instructions[1][1] = MakeSpan(OpCode::kWait, ActionKind::kForward, 20, 30, 2);
  r.program.instructions[0][3].op = OpCode::kReceive;  // not the wait for message 1
  r.program.messages.resize(4);
  for (const int id : {2, 3}) r.program.messages[id].to_device = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, r.Matched());
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].message, 0);
  EXPECT_EQ(m[0].consumer, 2);
}

// Weights that travel are sent before the first pass, and may come after the last.
TEST(MatchMessagesTest, NeedsNoPassAtEitherEnd) {
  ByHand r;
  r.Add({MakeSpan(OpCode::kSend, ActionKind::kForward, 0, 2, 0),
         Compute(ActionKind::kForward, 2, 10)});
  r.Add({Compute(ActionKind::kForward, 0, 5),
         MakeSpan(OpCode::kWait, ActionKind::kForward, 5, 9, 0)});
  r.program.messages.emplace_back().to_device = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, r.Matched());
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].send, 0);
  EXPECT_EQ(m[0].producer, -1);
  EXPECT_EQ(m[0].wait, 1);
  EXPECT_EQ(m[0].consumer, -1);
}

// What a device ran first come, first served is where the trace says.
TEST(MatchMessagesTest, FollowsTheOrderOfTheTrace) {
  ByHand r = TwoDevices();
  std::vector<Instruction>& list = r.program.instructions[0];
  std::swap(list[0], list[3]);
  std::swap(list[1], list[2]);
  r.trace.devices[0].order = {3, 2, 1, 0, 4, 5, 6};
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, r.Matched());
  ASSERT_EQ(m.size(), 2u);
  EXPECT_EQ(m[0].producer, 0);
  EXPECT_EQ(m[0].send, 1);
  EXPECT_EQ(m[1].wait, 3);
  EXPECT_EQ(m[1].consumer, 4);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TraceAnalysis a, r.Analyzed());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TraceAnalysis as, TwoDevices().Analyzed());
  EXPECT_EQ(a.devices[0].wall.waiting, as.devices[0].wall.waiting);
  EXPECT_EQ(SpansOf(r.program, r.trace, 0)[0].instruction, 3);
}

TEST(MatchMessagesTest, RefusesATraceOfAnotherProgram) {
  ByHand shorter = TwoDevices();
  shorter.program.instructions[0].pop_back();
  EXPECT_THAT(shorter.Matched(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device 0: the trace's 7 spans are not the program's 6")));
  EXPECT_THAT(shorter.Analyzed(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 0")));
  for (const size_t at : {1, 2, 3}) {  // a send, a receive and a wait
    for (const int32_t id : {-1, 2}) {
      ByHand unknown = TwoDevices();
      unknown.program.instructions[0][at].arg = id;
      EXPECT_THAT(unknown.Matched(),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not its own")));
    }
    ByHand crossed = TwoDevices();
    Message& m = crossed.program.messages[at == 1 ? 0 : 1];
    std::swap(m.from_device, m.to_device);
    EXPECT_THAT(crossed.Matched(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not its own")));
  }
  ByHand fewer = TwoDevices();
  fewer.program.instructions.pop_back();
  EXPECT_THAT(fewer.Matched(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 devices")));
  ByHand crossed = TwoDevices();
  crossed.program.messages[0].from_device = 1;
  EXPECT_THAT(crossed.Matched(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not its own")));
}

}  // namespace
}  // namespace pipelab
