#include "pipelines/analysis/analysis.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

Span MakeSpan(OpCode op, ActionKind kind, int64_t begin, int64_t end, int32_t arg = -1) {
  Span s;
  s.op = op;
  s.action.kind = kind;
  s.arg = arg;
  s.begin_ns = begin;
  s.end_ns = end;
  s.cpu_ns = end - begin;
  return s;
}

Span Compute(ActionKind kind, int64_t begin, int64_t end) {
  return MakeSpan(OpCode::kCompute, kind, begin, end);
}

// Numbers the spans of a device as its instructions.
DeviceTrace Device(std::vector<Span> spans) {
  DeviceTrace d;
  for (size_t i = 0; i < spans.size(); ++i) spans[i].instruction = static_cast<int32_t>(i);
  d.spans = std::move(spans);
  return d;
}

// Two devices, one micro-batch: forward 10 ns, backward 20 ns each, with every other kind of span.
//   device 0: F [0,10) send [10,12) recv [12,13) wait [15,55) B [55,75) reduce [75,80) step [80,90)
//   device 1: wait [2,20) F [20,30) B [30,50) send [50,53) reduce [60,80) step [80,85)
Trace TwoDevices() {
  Trace t;
  t.origin = TraceOrigin::kMeasured;
  t.makespan = Nanoseconds(95);  // 5 more than the spans: the last device's tail
  t.devices.push_back(Device({
      Compute(ActionKind::kForward, 0, 10),
      MakeSpan(OpCode::kSend, ActionKind::kForward, 10, 12, 0),
      MakeSpan(OpCode::kReceive, ActionKind::kBackward, 12, 13, 1),
      MakeSpan(OpCode::kWait, ActionKind::kBackward, 15, 55, 1),
      Compute(ActionKind::kBackward, 55, 75),
      MakeSpan(OpCode::kReduce, ActionKind::kForward, 75, 80, 0),
      MakeSpan(OpCode::kStep, ActionKind::kStep, 80, 90),
  }));
  t.devices.push_back(Device({
      MakeSpan(OpCode::kWait, ActionKind::kForward, 2, 20, 0),
      Compute(ActionKind::kForward, 20, 30),
      Compute(ActionKind::kBackward, 30, 50),
      MakeSpan(OpCode::kSend, ActionKind::kBackward, 50, 53, 1),
      MakeSpan(OpCode::kReduce, ActionKind::kForward, 60, 80, 0),
      MakeSpan(OpCode::kStep, ActionKind::kStep, 80, 85),
  }));
  return t;
}

Program TwoDeviceProgram(const Trace& trace) {
  Program p;
  p.messages.resize(2);
  p.messages[0].from_device = 0;
  p.messages[0].to_device = 1;
  p.messages[1].from_device = 1;
  p.messages[1].to_device = 0;
  p.messages[1].gradient = true;
  for (const DeviceTrace& d : trace.devices) {
    p.instructions.emplace_back();
    for (const Span& s : d.spans) {
      Instruction i;
      i.op = s.op;
      i.action = s.action;
      i.arg = s.arg;
      p.instructions.back().push_back(i);
    }
  }
  return p;
}

TEST(AnalyzeTest, BubbleIsOverTheIntervalOfCompute) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(TwoDevices()));
  EXPECT_EQ(a.interval_begin_ns, 0);
  EXPECT_EQ(a.interval_end_ns, 75);  // reductions and steps are not in it
  EXPECT_DOUBLE_EQ(a.devices[0].bubble, 1 - 30.0 / 75);
  EXPECT_DOUBLE_EQ(a.devices[1].bubble, 1 - 30.0 / 75);
  EXPECT_DOUBLE_EQ(a.overall.bubble, 1 - 60.0 / 150);
}

TEST(AnalyzeTest, PartsAddUpToTheStep) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(TwoDevices()));
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
  std::vector<Span> spans;
  for (int op = 0; op < kOps; ++op) {
    const int64_t begin = (int64_t{1} << op) - 1;
    spans.push_back(MakeSpan(static_cast<OpCode>(op), ActionKind::kForward, begin, 2 * begin + 1));
  }
  const auto sum = [](const std::vector<OpCode>& ops) {
    int64_t time = 0;
    for (const OpCode op : ops) time += int64_t{1} << static_cast<int>(op);
    return Nanoseconds(time);
  };
  Trace t;
  t.devices.push_back(Device(spans));
  t.makespan = Nanoseconds((int64_t{1} << kOps) - 1);  // to the end of the last span
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(t));
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
  Trace t = TwoDevices();
  t.devices[0].spans[0].cpu_ns = 4;  // the core was taken away for 6 of 10 ns
  t.devices[0].spans[0].library_ns = 3;
  t.devices[0].spans[4].library_ns = 15;
  t.devices[1].spans[4].library_ns = 20;  // a reduction: not compute
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(t));
  EXPECT_EQ(a.devices[0].wall.compute.value(), 30);
  EXPECT_EQ(a.devices[0].cpu.compute.value(), 24);
  EXPECT_EQ(a.devices[0].cpu.dispatch.value(), 0);
  EXPECT_DOUBLE_EQ(a.devices[0].library_share, 18.0 / 30);
  EXPECT_DOUBLE_EQ(a.devices[1].library_share, 0);
  EXPECT_DOUBLE_EQ(a.overall.library_share, 18.0 / 60);

  t.origin = TraceOrigin::kReplayed;  // has no other time than its own
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis replayed, Analyze(t));
  EXPECT_EQ(replayed.devices[0].cpu.compute.value(), 30);
}

TEST(AnalyzeTest, TotalsAreSumsAndPeaksAreMaxima) {
  Trace t = TwoDevices();
  t.devices[0].peak_activation = Bytes(100);
  t.devices[1].peak_activation = Bytes(70);
  t.devices[0].peak_state = Bytes(5);
  t.devices[1].peak_state = Bytes(6);
  t.devices[0].bytes_sent = Bytes(8);
  t.devices[1].bytes_sent = Bytes(9);
  t.devices[0].messages_sent = t.devices[1].messages_sent = 1;
  t.devices[0].collective_bytes = Bytes(3);
  t.devices[1].collective_bytes = Bytes(4);
  t.devices[0].spans[1] = t.devices[0].spans[0];  // a second forward, of no time
  t.devices[0].spans[1].begin_ns = t.devices[0].spans[1].end_ns;
  t.devices[0].spans[1].instruction = 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(t));
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
  Trace t;
  t.makespan = Nanoseconds(40);
  t.devices.push_back(
      Device({Compute(ActionKind::kRecompute, 0, 10), Compute(ActionKind::kBackwardInput, 10, 20),
              Compute(ActionKind::kBackwardWeight, 20, 30), Compute(ActionKind::kStep, 30, 40)}));
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(t));
  EXPECT_EQ(a.devices[0].wall.compute.value(), 30);
  EXPECT_EQ(a.devices[0].wall.optimizer.value(), 10);
  EXPECT_EQ(a.interval_end_ns, 30);
  EXPECT_DOUBLE_EQ(a.overall.bubble, 0);
}

TEST(AnalyzeTest, WithoutSpansThereAreTotalsOnly) {
  Trace t;
  t.makespan = Nanoseconds(7);
  t.devices.resize(2);
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(t));
  EXPECT_FALSE(a.has_spans);
  EXPECT_EQ(a.step_time.value(), 7);
  EXPECT_EQ(a.overall.bubble, 0);
  EXPECT_EQ(a.devices[1].wall.ends.value(), 7);
  EXPECT_EQ(a.devices[1].bubble, 0);
}

TEST(AnalyzeTest, ADeviceThatNeverComputesIsAllBubble) {
  Trace t = TwoDevices();
  t.devices.emplace_back();
  PIPELAB_ASSERT_OK_AND_ASSIGN(TraceAnalysis a, Analyze(t));
  EXPECT_DOUBLE_EQ(a.devices[2].bubble, 1);
  EXPECT_DOUBLE_EQ(a.overall.bubble, 1 - 60.0 / 225);
  // Also where the others' work lasts a nanosecond.
  t.devices[1].spans.clear();
  t.devices[0].spans.resize(1);
  Span& only = t.devices[0].spans[0];
  only.end_ns = only.begin_ns + 1;
  PIPELAB_ASSERT_OK_AND_ASSIGN(a, Analyze(t));
  EXPECT_DOUBLE_EQ(a.devices[1].bubble, 1);
}

TEST(AnalyzeTest, RefusesWhatIsNoTrace) {
  Trace overlap = TwoDevices();
  overlap.devices[1].spans[2].begin_ns = 29;
  EXPECT_THAT(Analyze(overlap),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device 1, span 2 (29 to 50 ns) begins before")));
  Trace backwards = TwoDevices();
  backwards.devices[0].spans[6].end_ns = 79;
  EXPECT_THAT(Analyze(backwards),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 0, span 6")));
  Trace negative = TwoDevices();
  negative.devices[0].spans[1].cpu_ns = -1;
  EXPECT_THAT(Analyze(negative), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("span 1")));
  Trace library = TwoDevices();
  library.devices[0].spans[1].library_ns = -1;
  EXPECT_THAT(Analyze(library), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("span 1 (10 to 12 ns) has a negative")));
  Trace unknown = TwoDevices();
  unknown.devices[1].spans[1].op = static_cast<OpCode>(static_cast<int>(kLastOpCode) + 1);
  EXPECT_THAT(Analyze(unknown),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("device 1, span 1 (20 to 30 ns) has an unknown instruction")));
  Trace tight = TwoDevices();
  tight.makespan = Nanoseconds(90);
  EXPECT_THAT(Analyze(tight), IsOk());
  Trace shorter = TwoDevices();
  shorter.makespan = Nanoseconds(89);
  EXPECT_THAT(Analyze(shorter),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("makespan")));
}

TEST(InFlightTest, CountsForwardsUntilTheirWeightGradient) {
  const DeviceTrace d = Device({
      Compute(ActionKind::kForward, 0, 10),
      Compute(ActionKind::kForward, 10, 20),
      Compute(ActionKind::kBackwardInput, 20, 30),
      Compute(ActionKind::kForward, 30, 40),
      Compute(ActionKind::kBackwardWeight, 40, 50),
      Compute(ActionKind::kBackward, 50, 60),
  });
  std::vector<std::pair<int64_t, int>> seen;
  for (const InFlightPoint& p : InFlight(d)) seen.emplace_back(p.time_ns, p.count);
  const std::vector<std::pair<int64_t, int>> expected = {
      {0, 1}, {10, 2}, {30, 3}, {50, 2}, {60, 1}};
  EXPECT_EQ(seen, expected);
}

// A forward at the host is not held: from the end of the wait for its offload to the begin of its
// reload. Without backwards a forward holds its memory while it runs.
TEST(InFlightTest, LeavesOutWhatIsAtTheHostAndForwardsAlone) {
  const auto points = [](const DeviceTrace& d) {
    std::vector<std::pair<int64_t, int>> seen;
    for (const InFlightPoint& p : InFlight(d)) seen.emplace_back(p.time_ns, p.count);
    return seen;
  };
  using Points = std::vector<std::pair<int64_t, int>>;
  EXPECT_EQ(points(Device({
                Compute(ActionKind::kForward, 0, 10),
                MakeSpan(OpCode::kOffload, ActionKind::kOffload, 10, 11),
                MakeSpan(OpCode::kHostWait, ActionKind::kOffload, 11, 20),
                MakeSpan(OpCode::kReload, ActionKind::kReload, 30, 31),
                MakeSpan(OpCode::kHostWait, ActionKind::kReload, 31, 40),
                Compute(ActionKind::kBackward, 40, 60),
            })),
            (Points{{0, 1}, {20, 0}, {30, 1}, {60, 0}}));
  EXPECT_EQ(points(Device({
                Compute(ActionKind::kForward, 0, 10),
                Compute(ActionKind::kForward, 10, 20),
                MakeSpan(OpCode::kStep, ActionKind::kStep, 20, 30),
            })),
            (Points{{0, 1}, {10, 0}, {10, 1}, {20, 0}}));
}

TEST(MatchMessagesTest, FindsBothEnds) {
  const Trace t = TwoDevices();
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, MatchMessages(TwoDeviceProgram(t), t));
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
  Trace t = TwoDevices();
  t.devices[1].spans[1] = MakeSpan(OpCode::kWait, ActionKind::kForward, 20, 30, 2);
  t.devices[1].spans[1].instruction = 1;
  Program p = TwoDeviceProgram(t);
  p.messages.resize(4);
  for (const int id : {2, 3}) p.messages[id].to_device = 1;
  t.devices[0].spans.erase(t.devices[0].spans.begin() + 3);  // the wait for message 1
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, MatchMessages(p, t));
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].message, 0);
  EXPECT_EQ(m[0].consumer, 2);
}

// Weights that travel are sent before the first pass, and may come after the last.
TEST(MatchMessagesTest, NeedsNoPassAtEitherEnd) {
  Trace t;
  t.devices.push_back(Device({MakeSpan(OpCode::kSend, ActionKind::kForward, 0, 2, 0),
                              Compute(ActionKind::kForward, 2, 10)}));
  t.devices.push_back(Device({Compute(ActionKind::kForward, 0, 5),
                              MakeSpan(OpCode::kWait, ActionKind::kForward, 5, 9, 0)}));
  Program p = TwoDeviceProgram(t);
  p.messages.pop_back();
  PIPELAB_ASSERT_OK_AND_ASSIGN(std::vector<MessageTiming> m, MatchMessages(p, t));
  ASSERT_EQ(m.size(), 1u);
  EXPECT_EQ(m[0].send, 0);
  EXPECT_EQ(m[0].producer, -1);
  EXPECT_EQ(m[0].wait, 1);
  EXPECT_EQ(m[0].consumer, -1);
}

TEST(MatchMessagesTest, RefusesATraceOfAnotherProgram) {
  const Trace t = TwoDevices();
  Program other = TwoDeviceProgram(t);
  other.instructions[1][0].arg = 1;
  EXPECT_THAT(MatchMessages(other, t), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("device 1 ran instruction 0")));
  Program shorter = TwoDeviceProgram(t);
  shorter.instructions[0].pop_back();
  EXPECT_THAT(MatchMessages(shorter, t),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the program lacks")));
  Trace none = t;
  none.devices[0].spans[0].instruction = -1;
  EXPECT_THAT(MatchMessages(TwoDeviceProgram(t), none),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the program lacks")));
  Program other_op = TwoDeviceProgram(t);
  other_op.instructions[1][1].op = OpCode::kStep;
  EXPECT_THAT(MatchMessages(other_op, t), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   HasSubstr("device 1 ran instruction 1")));
  for (const size_t at : {1, 2, 3}) {  // a send, a receive and a wait
    for (const int32_t id : {-1, 2}) {
      Trace lost = t;
      lost.devices[0].spans[at].arg = id;
      Program unknown = TwoDeviceProgram(t);
      unknown.instructions[0][at].arg = id;
      EXPECT_THAT(MatchMessages(unknown, lost),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not its own")));
    }
    Program crossed = TwoDeviceProgram(t);
    Message& m = crossed.messages[at == 1 ? 0 : 1];
    std::swap(m.from_device, m.to_device);
    EXPECT_THAT(MatchMessages(crossed, t),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not its own")));
  }
  Program fewer = TwoDeviceProgram(t);
  fewer.instructions.pop_back();
  EXPECT_THAT(MatchMessages(fewer, t),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 devices")));
  Program crossed = TwoDeviceProgram(t);
  crossed.messages[0].from_device = 1;
  EXPECT_THAT(MatchMessages(crossed, t),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not its own")));
}

}  // namespace
}  // namespace pipelab
